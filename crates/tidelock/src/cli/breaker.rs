//! The arguments of `tidelock breaker`.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum BreakerCommand {
    /// List all known breakers
    #[command(after_help = "\
Examples:
  tidelock breaker list
  tidelock breaker list --json")]
    List,
    /// Show one breaker
    #[command(after_help = "\
Examples:
  tidelock breaker show lsp/rust-analyzer")]
    Show {
        /// The name of the breaker
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Close a breaker and clear its failures
    #[command(after_help = "\
With --generation, the reset is refused (exit code 4) if the breaker has changed since you looked.

Examples:
  tidelock breaker reset lsp/rust-analyzer
  tidelock breaker reset lsp/rust-analyzer --generation 7
  tidelock breaker reset --all")]
    Reset(ResetArguments),
    /// Force a breaker open or closed until you reset it
    #[command(after_help = "\
`tidelock breaker reset NAME` returns it to automatic operation.

Examples:
  tidelock breaker force model/api open
  tidelock breaker force model/api closed")]
    Force {
        /// The name of the breaker
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The state to force
        state: ForcedState,
    },
    /// Show the manual changes to a breaker, or follow them live
    #[command(after_help = "\
With --follow, new changes are printed until you press Ctrl-C, even across daemon restarts. No
change is missed or repeated. With --follow and --json, each change is one JSON object on its own
line.

Examples:
  tidelock breaker history model/api
  tidelock breaker history model/api --follow
  tidelock breaker history model/api --after 12 --json")]
    History(HistoryArguments),
    /// Report the outcome of a call that was made outside the daemon
    #[command(after_help = "\
Examples:
  tidelock breaker record model/api success
  tidelock breaker record model/api failure
  tidelock breaker record model/api failure --retry-after 30s")]
    Record(RecordArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ResetArguments {
    /// The name of the breaker
    #[arg(required_unless_present = "all", conflicts_with = "all", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,
    /// Reset every breaker
    #[arg(long)]
    all: bool,
    /// Reset only if the breaker is still at this generation
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// The name of the breaker
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
    /// Keep printing new changes as they happen
    #[arg(long)]
    follow: bool,
    /// Only show changes after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To what is there.
    Past,
    /// And on with what comes.
    Follow,
}

impl HistoryArguments {
    pub(crate) fn reach(&self) -> Reach {
        if self.follow { Reach::Follow } else { Reach::Past }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// The name of the breaker
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
    /// How the call ended
    pub(crate) outcome: CallOutcome,
    /// After a failure: how long the service asked callers to wait (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ForcedState {
    /// Refuse every call
    Open,
    /// Let every call through
    Closed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallOutcome {
    /// The call succeeded
    Success,
    /// The call failed
    Failure,
}
