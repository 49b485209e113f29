//! The arguments of `tidelock quarantine`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List the records that can't be read, and why
    #[command(after_help = "\
Examples:
  tidelock quarantine list
  tidelock quarantine list --json")]
    List,
    /// Print a quarantined record byte for byte, as stored
    #[command(after_help = "\
Examples:
  tidelock quarantine show plan/plan_01KXYZ
  tidelock quarantine show plan/plan_01KXYZ > plan.json")]
    Show(QuarantineArguments),
    /// Permanently remove a quarantined record from the log
    #[command(after_help = "\
Anything that belongs to it, such as the sandbox of a plan, is removed when the daemon next starts.

Examples:
  tidelock quarantine drop plan/plan_01KXYZ")]
    Drop(QuarantineArguments),
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineArguments {
    /// The name of the stream, as shown by `tidelock quarantine list`
    #[arg(value_name = "STREAM", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) stream: String,
}
