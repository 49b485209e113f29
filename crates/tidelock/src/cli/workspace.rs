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
    /// Finish or take back an apply or undo that was cut off half-way
    #[command(after_help = "\
A daemon that starts does this by itself. If it cannot, for example because a directory may not be
written, no plan can be opened or applied in the workspace until it is repaired. Without --abort, this
tries again and shows what is in the way. With --abort, what can neither be finished nor taken back is
given up as it is: everything that it holds is kept and listed by `tidelock workspace rescued`.

Exit codes: 0 if nothing is stuck any more, 1 if something still is.

Examples:
  tidelock workspace repair .
  tidelock workspace repair . --abort")]
    Repair(RepairArguments),
    /// List, restore or drop content that an apply or undo could not leave in the workspace
    #[command(after_help = "\
When you save a file in the very moment in which it is applied or taken back, and your save cannot be
merged, it is kept here, and so is whatever could not be put back to its path. Nothing of it goes away
by itself.

Examples:
  tidelock workspace rescued
  tidelock workspace rescued restore 5FAV
  tidelock workspace rescued restore 5FAV --to notes/old.md
  tidelock workspace rescued drop 5FAV")]
    Rescued(RescuedArguments),
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
pub(crate) struct RepairArguments {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArguments,
    /// Set it aside if it can neither be finished nor taken back, and keep everything it holds
    #[arg(long)]
    pub(crate) abort: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RescuedArguments {
    #[command(subcommand)]
    pub(crate) command: Option<RescuedCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RescuedCommand {
    /// List what is kept, newest first
    List,
    /// Put rescued content back into its workspace
    Restore(RestoreArguments),
    /// Remove rescued content for good
    Drop(DropArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The id, or its beginning or end
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Another path, relative to the root of the workspace
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: Option<String>,
    /// If something is at the path, keep that in turn
    #[arg(long)]
    pub(crate) swap: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DropArguments {
    /// The id, or its beginning or end
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
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
