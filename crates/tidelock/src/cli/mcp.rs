//! The arguments of `tidelock mcp`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// The directory that the agent works in; defaults to the current one
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Let this agent apply and undo plans without asking
    #[arg(long)]
    allow_apply: bool,
}

/// Who decides whether a plan is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhoApplies {
    /// The configuration of the daemon says.
    AsConfigured,
    /// The agent itself.
    TheAgent,
}

impl McpArguments {
    pub(crate) fn who_applies(&self) -> WhoApplies {
        match self.allow_apply {
            true => WhoApplies::TheAgent,
            false => WhoApplies::AsConfigured,
        }
    }
}
