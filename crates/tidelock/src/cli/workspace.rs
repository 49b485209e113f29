//! The arguments of `tidelock workspace`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List the directories that plans were opened for
    #[command(after_help = "\
Examples:
  tidelock workspace list
  tidelock workspace list --json")]
    List,
    /// Forget a workspace that has no plans that are open or sealed
    #[command(after_help = "\
Nothing is changed in the directory.

Examples:
  tidelock workspace forget ~/old-project")]
    Forget(WorkspaceArguments),
    /// Show or set the commands that every new plan of a workspace must pass
    #[command(after_help = "\
The commands are lines for the shell, each one an argument.

Examples:
  tidelock workspace checks .
  tidelock workspace checks . 'cargo test' 'cargo clippy'
  tidelock workspace checks . --none")]
    Checks(ChecksArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WorkspaceArguments {
    /// The workspace: a directory in it, or its id
    #[arg(value_name = "DIR|ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workspace: String,
}

#[derive(Debug, Args)]
pub(crate) struct ChecksArguments {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArguments,
    /// No commands
    #[arg(long, conflicts_with = "commands")]
    none: bool,
    /// The commands, in place of those that there were
    #[arg(value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    commands: Vec<String>,
}

impl ChecksArguments {
    /// The commands to set; nothing to look only.
    pub(crate) fn wanted(&self) -> Option<&[String]> {
        (self.none || !self.commands.is_empty()).then_some(self.commands.as_slice())
    }
}
