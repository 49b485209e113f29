//! What a plan is.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

use super::acts::PlanRefused;
use super::diff::DiffSummary;
use super::workspaces::Rescued;

/// The body of `POST /v1/plans`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenPlan {
    /// The absolute path of a directory in the workspace. A git repository is one workspace, whatever directory of it is
    /// named; otherwise it is the directory itself. Not given for a plan that has a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "/home/me/project")]
    pub directory: Option<String>,
    /// What it is for, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The plan that it begins with and merges back into. Without it, that is the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Commands for `sh -c` that must pass in the sandbox before it can be applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// How its sandbox is made; the best that works here if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<SandboxStrategy>,
    /// How many commands of its children run at once; no limit of its own if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u16>,
    /// What happens to its other children when the command of one fails; `carry_on` if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_child_fails: Option<IfChildFails>,
    /// A second request with the same key is the same plan. The header `Idempotency-Key` means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// How a sandbox is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxStrategy {
    /// An overlay at the workspace's own path, in namespaces of its own.
    Overlay,
    /// A worktree of git, on a branch of its own.
    GitWorktree,
    /// A copy.
    Copy,
}

impl SandboxStrategy {
    /// The word, as the command line has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::GitWorktree => "git-worktree",
            Self::Copy => "copy",
        }
    }
}

impl fmt::Display for SandboxStrategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What happens to the other children of a plan when the command of one fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfChildFails {
    /// Nothing.
    #[default]
    CarryOn,
    /// Their commands are cancelled.
    Stop,
}

/// What a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// It is being worked on.
    Open,
    /// It is done, and waits to be applied or discarded. It can be opened again by working on it.
    Sealed,
    /// Its changes are in the workspace.
    Applied,
    /// Its changes were, and were taken back.
    Undone,
    /// It was given up.
    Discarded,
}

impl PlanState {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Applied => "applied",
            Self::Undone => "undone",
            Self::Discarded => "discarded",
        }
    }

    /// Whether the plan is neither worked on nor waiting for review.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Open | Self::Sealed)
    }
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Its id.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// What it is.
    pub state: PlanState,
    /// The machine that has its sandbox and its workspace. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The version that a change can name.
    pub version: u64,
    /// What it is for.
    pub title: String,
    /// The id of its workspace.
    pub workspace: String,
    /// Where that is.
    pub root: String,
    /// The plan that it merges back into, if that is not the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The plans that merge back into it; empty in lists, where each of them names its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// Who opened it.
    pub opened_by: String,
    /// When, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// When it last changed.
    #[schema(format = "date-time")]
    pub changed_at: String,
    /// How its sandbox is made.
    pub strategy: SandboxStrategy,
    /// Where a command in it finds the workspace.
    pub sandbox_root: String,
    /// Names what it began with.
    pub base: String,
    /// Names what is in it now; a check is good for one of these.
    pub fingerprint: String,
    /// How many changes were recorded.
    pub entries: u64,
    /// How many changesets there are.
    pub changesets: u64,
    /// What changed altogether, by numbers.
    pub summary: DiffSummary,
    /// Who works in it right now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<PlanCommand>,
    /// Its checks, and what became of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<PlanCheck>,
    /// The last attempt to apply it or to take it back that did not come to pass, if nothing has come to pass since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<PlanRefused>,
    /// Other open plans that touch the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<PlanOverlap>,
    /// What is in its sandbox and is not carried, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<PlanLeftOut>,
    /// Git branches that were made or moved in its sandbox. They are not carried: a plan carries files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<PlanBranch>,
    /// Work in its sandbox that is not carried, one sentence each, with what to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_carried: Vec<String>,
    /// What a command changed and could not be recorded. It is still in the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<PlanUnrecorded>,
    /// What does not work in its sandbox, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Content of users that its apply or undo had to keep; empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rescued: Vec<Rescued>,
    /// What a person should know, in one line; for example that the workspace is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A command that runs in a plan's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCommand {
    /// Its job.
    pub job: String,
    /// Whose it is.
    pub actor: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
}

/// A check, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCheck {
    /// The command.
    pub command: String,
    /// What became of it.
    pub state: CheckState,
    /// The job that ran or runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// How it ended, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub at: Option<String>,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// It has not run.
    Missing,
    /// It runs.
    Running,
    /// It passed, and nothing has changed since.
    Passed,
    /// It failed.
    Failed,
    /// It ran, and the plan has changed since.
    Outdated,
}

/// Another open plan that touches the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOverlap {
    /// The other plan.
    pub plan: String,
    /// What it is for.
    pub title: String,
    /// The files.
    pub paths: Vec<PlanOverlapPath>,
}

/// A file that two open plans touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOverlapPath {
    /// The path.
    pub path: String,
    /// Whether the two would conflict if both were applied.
    pub conflicts: bool,
    /// At which lines of the other plan's file they would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u64>,
}

/// Something that is not carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanLeftOut {
    /// Where it is.
    pub path: String,
    /// Why: `repository`, `changed_repository`, `history`, `too_large`, `too_long`, `special`, `name`, `unreadable` or
    /// `too_many`.
    pub why: String,
    /// Whether it was made or changed in the sandbox, so that it would be lost with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub work: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A git branch that was made or moved in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanBranch {
    /// Its name.
    pub name: String,
    /// How many commits on it were made in the sandbox.
    pub commits: u64,
    /// The first lines of the newest of them, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
}

/// What a command changed could not be recorded. Sealing or applying the plan tries again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUnrecorded {
    /// The command, in one line.
    pub command: String,
    /// Its job, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// What was in the way.
    pub why: String,
}

/// The answer of `GET /v1/plans`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanList {
    /// The plans, newest first.
    pub plans: Vec<Plan>,
    /// To get older ones, ask for those before this one. Nothing if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
}

/// Plans in two numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCounts {
    /// How many are being worked on.
    pub open: u64,
    /// How many are done and wait to be applied or discarded.
    pub sealed: u64,
}

/// A moment in the life of a plan, as the data of an event of `GET /v1/plans/{id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanMoment {
    /// Its place in the plan's history.
    pub sequence: u64,
    /// When it was.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `opened`, `changeset_started`, `changed`, `changeset_closed`, `command_started`, `command_ended`,
    /// `sealed`, `reopened`, `check_started`, `check_ended`, `overlapped`, `applied`, `refused`, `undone`, `refreshed`,
    /// `child_merged`, `rescued`, `set_aside` or `discarded`.
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
}

/// The answer of `GET /v1/plans/{id}/history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanHistory {
    /// What happened, oldest first.
    pub moments: Vec<PlanMoment>,
}
