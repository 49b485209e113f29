//! The arguments of `tidelock workspace`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List the workspaces that plans have been opened for
    #[command(after_help = "\
Examples:
  tidelock workspace list
  tidelock workspace list --json")]
    List,
    /// Forget a workspace that has no open or sealed plans
    #[command(after_help = "\
The directory itself doesn't change.

Examples:
  tidelock workspace forget ~/old-project")]
    Forget(WorkspaceArguments),
    /// Finish or roll back an apply or undo that was interrupted
    #[command(after_help = "\
The daemon does this when it starts. If it can't, for example because a directory isn't writable,
no plan can be opened or applied in the workspace until it is repaired. Without --abort, this
command tries again and shows what is in the way. With --abort, an apply or undo that can neither
be finished nor rolled back is abandoned as it is; everything it holds is kept and listed by
`tidelock workspace rescued`.

The exit code is 0 if nothing is stuck anymore, and 1 if something still is.

Examples:
  tidelock workspace repair .
  tidelock workspace repair . --abort")]
    Repair(RepairArguments),
    /// List, restore or drop content that an apply or undo couldn't leave in the workspace
    #[command(after_help = "\
If you save a file at the very moment when it is applied or undone, and your save can't be merged,
it is kept here. So is anything that couldn't be put back at its path. Rescued content is kept
until you restore or drop it.

Examples:
  tidelock workspace rescued
  tidelock workspace rescued restore 5FAV
  tidelock workspace rescued restore 5FAV --to notes/old.md
  tidelock workspace rescued drop 5FAV")]
    Rescued(RescuedArguments),
    /// Show or set the checks that every new plan of a workspace must pass
    #[command(after_help = "\
Each check is a shell command, given as one argument.

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
    /// Abandon what can neither be finished nor rolled back, and keep everything it holds
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
    /// List rescued content, newest first
    #[command(after_help = "\
Examples:
  tidelock workspace rescued list
  tidelock workspace rescued list --json")]
    List,
    /// Put rescued content back into its workspace
    #[command(after_help = "\
The content goes back to its own path, unless you choose another one with --to. If something is
already there, nothing changes; with --swap, that is rescued in turn.

Examples:
  tidelock workspace rescued restore 5FAV
  tidelock workspace rescued restore 5FAV --to notes/old.md
  tidelock workspace rescued restore 5FAV --swap")]
    Restore(RestoreArguments),
    /// Permanently remove rescued content
    #[command(after_help = "\
Examples:
  tidelock workspace rescued drop 5FAV
  tidelock workspace rescued drop 5FAV --json")]
    Drop(DropArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The id, or a unique beginning or end of it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
    /// Restore to this path instead, relative to the root of the workspace
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: Option<String>,
    /// If something is already at the path, rescue that in turn
    #[arg(long)]
    pub(crate) swap: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DropArguments {
    /// The id, or a unique beginning or end of it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ChecksArguments {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceArguments,
    /// Remove all checks
    #[arg(long, conflicts_with = "commands")]
    none: bool,
    /// The checks, as shell commands; they replace the existing ones
    #[arg(value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    commands: Vec<String>,
}

impl ChecksArguments {
    /// The commands to set; nothing to look only.
    pub(crate) fn wanted(&self) -> Option<&[String]> {
        (self.none || !self.commands.is_empty()).then_some(self.commands.as_slice())
    }
}
