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
    /// Close a breaker and forget its failures
    #[command(after_help = "\
With --generation the reset is refused (exit code 4) when the breaker has changed since you looked.

Examples:
  tidelock breaker reset lsp/rust-analyzer
  tidelock breaker reset lsp/rust-analyzer --generation 7
  tidelock breaker reset --all")]
    Reset(ResetArguments),
    /// Hold a breaker open or closed until somebody changes that
    #[command(after_help = "\
`tidelock breaker reset NAME` lets it decide by itself again.

Examples:
  tidelock breaker force model/api open
  tidelock breaker force model/api closed")]
    Force {
        /// The name of the breaker
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// What it shall be
        state: ForcedState,
    },
    /// Show what was done to a breaker by hand, and follow it
    #[command(after_help = "\
With --follow it goes on until Ctrl-C, also when the daemon is started afresh in between: nothing is missed and
nothing told twice. With --json it is then one object a line.

Examples:
  tidelock breaker history model/api
  tidelock breaker history model/api --follow
  tidelock breaker history model/api --after 12 --json")]
    History(HistoryArguments),
    /// Report how a call ended that was made outside of the daemon
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
    /// Reset only if this is still its generation
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// The name of the breaker
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
    /// Go on with what happens from now on
    #[arg(long)]
    follow: bool,
    /// Only what came after this number
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
    pub(crate) outcome: Outcome,
    /// How long the other side asked to be left alone, after a failure (500ms, 30s, 5m, 1h)
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
pub(crate) enum Outcome {
    /// It worked
    Success,
    /// It did not
    Failure,
}
