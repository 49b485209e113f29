//! The arguments of `tidelock acp`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Debug, Args)]
pub(crate) struct AcpArguments {
    /// The agent for new sessions; `tidelock agent list` shows the available ones
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,
    /// The model, for agents that support several
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// A YAML script of steps that the rehearsal agent runs for each prompt
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) script: Option<PathBuf>,
}
