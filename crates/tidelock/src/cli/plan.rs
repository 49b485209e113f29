//! The arguments of `tidelock plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::plan_change::PlanRecordArguments;
use super::sandboxed::SandboxedArguments;
use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Open a plan with its own sandbox of a workspace
    #[command(after_help = "\
The sandbox starts as the workspace is now, including uncommitted changes. Nothing done in it
reaches the workspace until you run `tidelock plan apply`.

Examples:
  tidelock plan new --title 'fix the parser' --check 'cargo test'
  tidelock plan new ~/project --strategy copy
  tidelock plan new --parent @ --title 'one half of it'")]
    New(Box<NewArguments>),
    /// List plans, newest first
    #[command(after_help = "\
Without --all or --state, only open and sealed plans are listed. Overlaps are other plans that touch
the same files, with the number of those files that would conflict.

Examples:
  tidelock plan list
  tidelock plan list --workspace . --all
  tidelock plan list --state applied --json")]
    List(PlanListArguments),
    /// Show the details of a plan: checks, who changed what, overlaps, and what was refused and why
    #[command(after_help = "\
To name a plan, use its id, a unique beginning or end of the id (at least four characters), or `@`
for the newest plan of the current workspace.

Examples:
  tidelock plan show @
  tidelock plan show S1TX --json")]
    Show(PlanArguments),
    /// Show the changes in a plan
    #[command(after_help = "\
On a terminal, the diff is colored and shown in GIT_PAGER, PAGER or less. Elsewhere, and with
--patch, it is a patch that `git apply` accepts.

Examples:
  tidelock plan diff @
  tidelock plan diff @ --stat
  tidelock plan diff S1TX | git apply --check")]
    Diff(DiffArguments),
    /// Run a command in the sandbox of a plan, as a job
    #[command(after_help = "\
The output is shown as it arrives, and the exit code is the command's own. Its changes are
recorded as yours. With --check, the check is added to the plan, and the plan's checks run after
the command has succeeded; the exit code is 1 if one fails.

Examples:
  tidelock plan exec @ -- cargo fmt
  tidelock plan exec @ --check 'cargo test' -- ./fix.sh
  tidelock plan exec S1TX --detach -- make")]
    Exec(Box<PlanExecArguments>),
    /// Change a file in the sandbox, and record the change
    #[command(after_help = "\
Paths are relative to the root of the workspace, as `plan diff` shows them.

Examples:
  tidelock plan record @ --write src/new.rs --from draft.rs --reason 'a first draft'
  echo hello | tidelock plan record @ --write notes.txt --from -
  tidelock plan record @ --edit src/main.rs --find 'foo()' --replace 'bar()'
  tidelock plan record @ --rename old.rs new.rs
  tidelock plan record @ --chmod run.sh +x")]
    Record(Box<PlanRecordArguments>),
    /// Print a file from the sandbox
    #[command(after_help = "\
A file is printed byte for byte, a directory as a list of names, and a symlink as its target.

Examples:
  tidelock plan cat @ src/main.rs
  tidelock plan cat S1TX data.bin > data.bin")]
    Cat(CatArguments),
    /// List who changed what in a plan
    #[command(after_help = "\
Examples:
  tidelock plan changesets @
  tidelock plan changesets @ --json")]
    Changesets(PlanArguments),
    /// Show the history of a plan, or follow it live
    #[command(after_help = "\
With --follow, new events are printed until the plan is discarded or you press Ctrl-C. With --follow
and --json, each event is one JSON object on its own line.

Examples:
  tidelock plan log @
  tidelock plan log S1TX --follow")]
    Log(LogArguments),
    /// Mark the work in a plan as done
    #[command(after_help = "\
Working on the plan reopens it.

Examples:
  tidelock plan seal @")]
    Seal(PlanArguments),
    /// Run the checks of a plan in its sandbox
    #[command(after_help = "\
Checks that have passed and are still up to date don't run again, unless you pass --all. The exit
code is 1 if one fails.

Examples:
  tidelock plan check @
  tidelock plan check @ --add 'cargo test' --all
  tidelock plan check @ --no-wait")]
    Check(CheckArguments),
    /// Apply the changes of plans to their workspace, all or nothing
    #[command(after_help = "\
If the workspace has changed in the meantime, the changes are merged. If they conflict, nothing
changes, the conflicts are shown, and the exit code is 1.

Examples:
  tidelock plan apply @
  tidelock plan apply S1TX 9KQ2 --dry-run
  tidelock plan apply @ --commit -m 'Fix the parser'")]
    Apply(ApplyArguments),
    /// Undo an applied plan, and keep everyone's later work
    #[command(after_help = "\
To apply the plan again, use `tidelock plan apply`.

Examples:
  tidelock plan undo @
  tidelock plan undo S1TX --changeset 7PQR
  tidelock plan undo S1TX --dry-run")]
    Undo(UndoArguments),
    /// Update a plan's sandbox to the current state of its workspace
    #[command(after_help = "\
The plan's changes are merged onto that state. If they conflict, nothing changes, the conflicts are
shown, and the exit code is 1.

Examples:
  tidelock plan refresh @")]
    Refresh(PlanArguments),
    /// Discard a plan
    #[command(after_help = "\
A plan with unapplied work is discarded only with --force.

Examples:
  tidelock plan discard @
  tidelock plan discard S1TX --force")]
    Discard(DiscardArguments),
    /// Permanently delete a finished plan and everything recorded about it
    #[command(after_help = "\
Its changes and their contents are removed from the daemon's home and overwritten, unless another
plan has the same contents. The workspace doesn't change, and the plan can't be undone afterwards.
Discard an open plan first.

Examples:
  tidelock plan forget @
  tidelock plan forget S1TX 9KQ2")]
    Forget(ForgetArguments),
    /// Delete the sandboxes of finished plans
    #[command(after_help = "\
Plans with unapplied work are always kept, whatever their age.

Examples:
  tidelock plan gc --dry-run
  tidelock plan gc --older-than 1h")]
    Gc(PlanGcArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The plan: its id, a unique part of it, or `@`
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: String,
}

/// How a new plan is opened.
#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// A one-line title for the plan
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    /// A shell command that must pass in the sandbox before the plan can be applied (may be repeated)
    #[arg(long = "check", value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checks: Vec<String>,
    /// How to create the sandbox; defaults to the best strategy that works here
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    /// The parent plan to start from and merge back into, instead of the workspace
    #[arg(long, value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    /// How many commands of its child plans may run at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: Option<u16>,
    /// What to do with the other child plans when the command of one fails
    #[arg(long, value_name = "WHAT")]
    pub(crate) if_child_fails: Option<IfChildFails>,
    /// Idempotency key: opening a plan again with the same key returns the same plan
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// A directory in the workspace; defaults to the current one
    #[arg(value_name = "DIR", conflicts_with = "parent")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// An overlay at the workspace's own path
    Overlay,
    /// A git worktree
    GitWorktree,
    /// A copy
    Copy,
}

impl From<Strategy> for protocol::SandboxStrategy {
    fn from(strategy: Strategy) -> protocol::SandboxStrategy {
        match strategy {
            Strategy::Overlay => protocol::SandboxStrategy::Overlay,
            Strategy::GitWorktree => protocol::SandboxStrategy::GitWorktree,
            Strategy::Copy => protocol::SandboxStrategy::Copy,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfChildFails {
    /// Cancel their commands
    Stop,
    /// Let them continue
    CarryOn,
}

impl From<IfChildFails> for protocol::IfChildFails {
    fn from(wanted: IfChildFails) -> protocol::IfChildFails {
        match wanted {
            IfChildFails::Stop => protocol::IfChildFails::Stop,
            IfChildFails::CarryOn => protocol::IfChildFails::CarryOn,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanListArguments {
    /// Also list finished plans (applied, undone or discarded)
    #[arg(long, conflicts_with = "state")]
    all: bool,
    /// Only list plans of the workspace of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Only list plans in this state
    #[arg(long, value_name = "STATE")]
    state: Option<PlanState>,
}

impl PlanListArguments {
    /// The states that are asked for; none for all of them.
    pub(crate) fn states(&self) -> &'static [&'static str] {
        match (self.all, self.state) {
            (_, Some(PlanState::Open)) => &["open"],
            (_, Some(PlanState::Sealed)) => &["sealed"],
            (_, Some(PlanState::Applied)) => &["applied"],
            (_, Some(PlanState::Undone)) => &["undone"],
            (_, Some(PlanState::Discarded)) => &["discarded"],
            (true, None) => &[],
            (false, None) => &["open", "sealed"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanState {
    /// In progress
    Open,
    /// Done, and ready to be applied or discarded
    Sealed,
    /// The changes are in the workspace
    Applied,
    /// The changes were applied, then undone
    Undone,
    /// The plan was discarded
    Discarded,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Show how much changed in each file
    #[arg(long, group = "form")]
    stat: bool,
    /// Show only the paths
    #[arg(long, group = "form")]
    name_only: bool,
    /// Show a patch, without colors or a pager
    #[arg(long, group = "form")]
    patch: bool,
    /// Show only the changes of this changeset
    #[arg(long, value_name = "CHANGESET", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) changeset: Option<String>,
}

/// In what form a diff is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffForm {
    /// For people, if there is one; otherwise a patch.
    Usual,
    Stat,
    Names,
    Patch,
}

impl DiffArguments {
    pub(crate) fn form(&self) -> DiffForm {
        match (self.stat, self.name_only, self.patch) {
            (true, _, _) => DiffForm::Stat,
            (_, true, _) => DiffForm::Names,
            (_, _, true) => DiffForm::Patch,
            _ => DiffForm::Usual,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanExecArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Add a check to the plan, and run its checks after the command succeeds (may be repeated)
    #[arg(long = "check", value_name = "LINE", conflicts_with = "detach", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checks: Vec<String>,
    #[command(flatten)]
    pub(crate) command: SandboxedArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// The path, relative to the root of the workspace; defaults to the root
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Keep printing new events until the plan is discarded
    #[arg(short, long)]
    follow: bool,
}

impl LogArguments {
    pub(crate) fn reach(&self) -> super::Reach {
        if self.follow {
            super::Reach::Follow
        } else {
            super::Reach::Past
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// First add this shell command to the plan's checks (may be repeated)
    #[arg(long, value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) add: Vec<String>,
    /// Also rerun checks that have passed
    #[arg(long)]
    pub(crate) all: bool,
    /// Don't wait for the checks to finish
    #[arg(long)]
    no_wait: bool,
}

impl CheckArguments {
    pub(crate) fn stay(&self) -> super::Stay {
        if self.no_wait {
            super::Stay::Submitted
        } else {
            super::Stay::Ended
        }
    }
}

/// Whether and how a git commit is made.
#[derive(Debug, Args)]
pub(crate) struct CommitArguments {
    /// Also create a git commit of just these paths
    #[arg(long)]
    commit: bool,
    /// The commit message; defaults to the titles of the plans
    #[arg(short, long, value_name = "TEXT", requires = "commit", value_parser = NonEmptyStringValueParser::new())]
    message: Option<String>,
}

impl CommitArguments {
    pub(crate) fn wanted(&self) -> Option<protocol::CommitPlans> {
        self.commit.then(|| protocol::CommitPlans {
            message: self.message.clone(),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The plans: ids, unique parts of ids, or `@`
    #[arg(value_name = "PLAN", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plans: Vec<String>,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) commit: CommitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Undo only this changeset
    #[arg(long, value_name = "CHANGESET", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) changeset: Option<String>,
    /// Show what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Discard the plan even if it has unapplied work
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    /// The plans: ids, unique parts of ids, or `@`
    #[arg(value_name = "PLAN", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plans: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanGcArguments {
    /// Only plans that finished longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = units::parse_duration)]
    pub(crate) older_than: Duration,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
