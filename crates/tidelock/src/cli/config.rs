//! The arguments of `tidelock config`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SettingsArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SettingsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print the path of the configuration file, whether or not it exists
    #[command(after_help = "\
Examples:
  tidelock config path
  $EDITOR \"$(tidelock config path)\"")]
    Path,
    /// Check the configuration file, without a daemon
    #[command(after_help = "\
The exit code is 1 if a daemon could not start with this configuration.

Examples:
  tidelock config check
  tidelock config check && tidelock down && tidelock up")]
    Check,
}
