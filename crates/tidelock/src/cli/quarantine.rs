//! The arguments of `tidelock quarantine`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List what cannot be read, and why
    #[command(after_help = "\
Examples:
  tidelock quarantine list
  tidelock quarantine list --json")]
    List,
    /// Print what is stored, byte for byte
    #[command(after_help = "\
Examples:
  tidelock quarantine show plan/plan_01KXYZ
  tidelock quarantine show plan/plan_01KXYZ > plan.json")]
    Show(QuarantineArguments),
    /// Remove it from the log for good
    #[command(after_help = "\
What belongs to it, such as the sandbox of a plan, goes at the next start of the daemon.

Examples:
  tidelock quarantine drop plan/plan_01KXYZ")]
    Drop(QuarantineArguments),
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineArguments {
    /// The name of the stream, as `tidelock quarantine list` shows it
    #[arg(value_name = "STREAM", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stream: String,
}
