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
    /// Open a plan: a sandbox of its own on the workspace of a directory
    #[command(after_help = "\
The sandbox begins with the workspace as it is now, uncommitted changes included. Nothing that is
done in it reaches the workspace before `tidelock plan apply`.

Examples:
  tidelock plan new --title 'mend the parser' --check 'cargo test'
  tidelock plan new ~/project --strategy copy
  tidelock plan new --parent @ --title 'one half of it'")]
    New(Box<NewArguments>),
    /// List plans, newest first
    #[command(after_help = "\
Without --all or --state only those that are open or sealed. Overlaps are other plans that touch the same
files, and how many of those files would conflict.

Examples:
  tidelock plan list
  tidelock plan list --workspace . --all
  tidelock plan list --state applied --json")]
    List(PlanListArguments),
    /// Show everything about a plan: its checks, who changed what, overlaps, and what was refused and why
    #[command(after_help = "\
A plan is named by its id, by four or more letters of its beginning or its end that no other plan has,
or by `@` for the newest plan of the workspace that you are in.

Examples:
  tidelock plan show @
  tidelock plan show S1TX --json")]
    Show(PlanArguments),
    /// Show what a plan changes
    #[command(after_help = "\
On a terminal it is coloured and goes through GIT_PAGER, PAGER or less. Elsewhere, and with --patch,
it is a patch that `git apply` takes.

Examples:
  tidelock plan diff @
  tidelock plan diff @ --stat
  tidelock plan diff S1TX | git apply --check")]
    Diff(DiffArguments),
    /// Run a command in the sandbox of a plan, as a job
    #[command(after_help = "\
The output is shown as it comes, and the exit code is the command's own. What it changed is recorded
as yours. With --check, the check is added to the plan and its checks are run when the command has
succeeded; the exit code is 1 if one fails.

Examples:
  tidelock plan exec @ -- cargo fmt
  tidelock plan exec @ --check 'cargo test' -- ./mend.sh
  tidelock plan exec S1TX --detach -- make")]
    Exec(Box<PlanExecArguments>),
    /// Write to a file of the sandbox, and have that recorded
    #[command(after_help = "\
Paths are from the root of the workspace, as `plan diff` shows them.

Examples:
  tidelock plan record @ --write src/new.rs --from draft.rs --reason 'a first draft'
  echo hello | tidelock plan record @ --write notes.txt --from -
  tidelock plan record @ --edit src/main.rs --find 'foo()' --replace 'bar()'
  tidelock plan record @ --rename old.rs new.rs
  tidelock plan record @ --chmod run.sh +x")]
    Record(Box<PlanRecordArguments>),
    /// Print a file of the sandbox
    #[command(after_help = "\
A file is printed byte for byte, a directory as the names in it, a symlink as where it points.

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
    /// Show what has happened to a plan, and follow it
    #[command(after_help = "\
With --follow it goes on until the plan is over or Ctrl-C. With --json it is then one object a line.

Examples:
  tidelock plan log @
  tidelock plan log S1TX --follow")]
    Log(LogArguments),
    /// Say that the work in a plan is done
    #[command(after_help = "\
Working on it opens it again.

Examples:
  tidelock plan seal @")]
    Seal(PlanArguments),
    /// Run the checks of a plan in its sandbox
    #[command(after_help = "\
Checks that have passed and are not outdated are not run again, unless --all is given. The exit code
is 1 if one fails.

Examples:
  tidelock plan check @
  tidelock plan check @ --add 'cargo test' --all
  tidelock plan check @ --no-wait")]
    Check(CheckArguments),
    /// Bring the changes of plans into their workspace: all of them or none
    #[command(after_help = "\
Where the workspace has moved on, both are merged. If that cannot be done nothing is changed, the
conflicts are shown, and the exit code is 1.

Examples:
  tidelock plan apply @
  tidelock plan apply S1TX 9KQ2 --dry-run
  tidelock plan apply @ --commit -m 'Mend the parser'")]
    Apply(ApplyArguments),
    /// Take an applied plan back, and leave everybody's later work alone
    #[command(after_help = "\
`tidelock plan apply` brings back what was taken back.

Examples:
  tidelock plan undo @
  tidelock plan undo S1TX --changeset 7PQR
  tidelock plan undo S1TX --dry-run")]
    Undo(UndoArguments),
    /// Move a plan's sandbox to the present state of its workspace
    #[command(after_help = "\
The plan's changes are merged onto it. If that cannot be done nothing is changed, the conflicts are
shown, and the exit code is 1.

Examples:
  tidelock plan refresh @")]
    Refresh(PlanArguments),
    /// Give a plan up
    #[command(after_help = "\
A plan with work in it that was not applied is given up with --force only.

Examples:
  tidelock plan discard @
  tidelock plan discard S1TX --force")]
    Discard(DiscardArguments),
    /// Delete a plan that is over for good, with everything that was recorded about it
    #[command(after_help = "\
Its changes and their contents are removed from the daemon's home, and overwritten, unless another
plan has the same contents. The workspace stays as it is, and the plan can't be undone afterwards.
Discard an open plan first.

Examples:
  tidelock plan forget @
  tidelock plan forget S1TX 9KQ2")]
    Forget(ForgetArguments),
    /// Free the sandboxes of plans that are over
    #[command(after_help = "\
A plan with work in it that was not applied is kept, whatever its age.

Examples:
  tidelock plan gc --dry-run
  tidelock plan gc --older-than 1h")]
    Gc(PlanGcArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// The plan: its id, a part of it, or `@`
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: String,
}

/// How a new plan is opened.
#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// What it is for, in one line
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    /// A line for the shell that must pass in the sandbox before it can be applied (may be repeated)
    #[arg(long = "check", value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checks: Vec<String>,
    /// How the sandbox is made; otherwise the best that works here
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<Strategy>,
    /// The plan that it begins with and merges back into, in place of the workspace
    #[arg(long, value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    /// How many commands of its children run at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_parallel: Option<u16>,
    /// What happens to its other children when the command of one fails
    #[arg(long, value_name = "WHAT")]
    pub(crate) if_child_fails: Option<IfChildFails>,
    /// A second plan with the same key is the same plan
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// A directory of the workspace; otherwise the one that you are in
    #[arg(value_name = "DIR", conflicts_with = "parent")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// An overlay at the workspace's own path
    Overlay,
    /// A worktree of git
    GitWorktree,
    /// A copy
    Copy,
}

impl From<Strategy> for api::SandboxStrategy {
    fn from(strategy: Strategy) -> api::SandboxStrategy {
        match strategy {
            Strategy::Overlay => api::SandboxStrategy::Overlay,
            Strategy::GitWorktree => api::SandboxStrategy::GitWorktree,
            Strategy::Copy => api::SandboxStrategy::Copy,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfChildFails {
    /// Their commands are cancelled
    Stop,
    /// Nothing
    CarryOn,
}

impl From<IfChildFails> for api::IfChildFails {
    fn from(wanted: IfChildFails) -> api::IfChildFails {
        match wanted {
            IfChildFails::Stop => api::IfChildFails::Stop,
            IfChildFails::CarryOn => api::IfChildFails::CarryOn,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanListArguments {
    /// Those that are over as well
    #[arg(long, conflicts_with = "state")]
    all: bool,
    /// Only those of the workspace of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Only those in this state
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
    /// It is being worked on
    Open,
    /// It is done, and waits to be applied or discarded
    Sealed,
    /// Its changes are in the workspace
    Applied,
    /// Its changes were, and were taken back
    Undone,
    /// It was given up
    Discarded,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// How much changed in each file
    #[arg(long, group = "form")]
    stat: bool,
    /// Only the paths
    #[arg(long, group = "form")]
    name_only: bool,
    /// The patch, without colours and pager
    #[arg(long, group = "form")]
    patch: bool,
    /// Only what this changeset did
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
    /// Add a check to the plan, and run its checks when the command has succeeded (may be repeated)
    #[arg(long = "check", value_name = "LINE", conflicts_with = "detach", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) checks: Vec<String>,
    #[command(flatten)]
    pub(crate) command: SandboxedArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// The path from the root of the workspace; otherwise the root itself
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Go on until the plan is over
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
    /// A line for the shell to be added to its checks first (may be repeated)
    #[arg(long, value_name = "LINE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) add: Vec<String>,
    /// Run those again that have passed as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not wait for their end
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
    /// Also make a git commit of just these paths
    #[arg(long)]
    commit: bool,
    /// Its message; otherwise the titles of the plans
    #[arg(short, long, value_name = "TEXT", requires = "commit", value_parser = NonEmptyStringValueParser::new())]
    message: Option<String>,
}

impl CommitArguments {
    pub(crate) fn wanted(&self) -> Option<api::CommitPlans> {
        self.commit.then(|| api::CommitPlans {
            message: self.message.clone(),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The plans: ids, parts of them, or `@`
    #[arg(value_name = "PLAN", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plans: Vec<String>,
    /// Tell what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) commit: CommitArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Only this changeset of it
    #[arg(long, value_name = "CHANGESET", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) changeset: Option<String>,
    /// Tell what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Even if there is work in it that was not applied
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    /// The plans: their ids, parts of them, or `@`
    #[arg(value_name = "PLAN", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plans: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanGcArguments {
    /// Those that have been over for longer than this
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = units::parse_duration)]
    pub(crate) older_than: Duration,
    /// Tell what would be freed, and free nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
