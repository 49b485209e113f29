//! Plans and their state.

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
    /// The absolute path of a directory in the workspace. In a git repository, the workspace is the whole
    /// repository, whichever of its directories you pass; otherwise it is the directory itself. Omit it if
    /// the plan has a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "/home/me/project")]
    pub directory: Option<String>,
    /// A one-line title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The id of the plan to start from and merge back into. Defaults to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Commands for `sh -c` that must pass in the sandbox before the plan can be applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// How to create the sandbox. Defaults to the best strategy that works here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<SandboxStrategy>,
    /// How many commands of the plan's children may run at once. If omitted, the plan sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u16>,
    /// What happens to the other children when a command of one child fails. Defaults to `carry_on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_child_fails: Option<IfChildFails>,
    /// An idempotency key. A second request with the same key returns the same plan. The `Idempotency-Key`
    /// header is equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// How a sandbox is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxStrategy {
    /// An overlay at the workspace's own path, in separate namespaces.
    Overlay,
    /// A git worktree on a separate branch.
    GitWorktree,
    /// A copy of the workspace.
    Copy,
}

impl SandboxStrategy {
    /// The name, as on the command line.
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

/// What happens to the other children of a plan when a command of one child fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfChildFails {
    /// They continue.
    #[default]
    CarryOn,
    /// Their commands are cancelled.
    Stop,
}

/// The state of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// The plan is being worked on.
    Open,
    /// The plan is ready for review. Working on it opens it again.
    Sealed,
    /// The changes are in the workspace.
    Applied,
    /// The changes were applied and then undone.
    Undone,
    /// The plan was discarded.
    Discarded,
}

impl PlanState {
    /// The name on the wire.
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

    /// Whether the plan is neither being worked on nor waiting for review.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Open | Self::Sealed)
    }
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The id of the plan.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The state of the plan.
    pub state: PlanState,
    /// The machine that has the sandbox and the workspace. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The version, which you can pass to requests that change the plan.
    pub version: u64,
    /// The one-line title.
    pub title: String,
    /// The id of its workspace.
    pub workspace: String,
    /// The path of the workspace.
    pub root: String,
    /// The id of the plan that it merges back into. Absent if it merges into the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The ids of the plans that merge back into this one. Absent in lists, where each child has its
    /// `parent`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// Who opened the plan.
    pub opened_by: String,
    /// When the plan was opened, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// When the plan last changed.
    #[schema(format = "date-time")]
    pub changed_at: String,
    /// How the sandbox is created.
    pub strategy: SandboxStrategy,
    /// The path of the workspace as commands in the sandbox see it.
    pub sandbox_root: String,
    /// Identifies the content that the plan started from.
    pub base: String,
    /// The fingerprint of the current content. The result of a check is only valid for one fingerprint.
    pub fingerprint: String,
    /// The number of recorded changes.
    pub entries: u64,
    /// The number of changesets.
    pub changesets: u64,
    /// The size of all changes together.
    pub summary: DiffSummary,
    /// The commands that are running in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<PlanCommand>,
    /// The checks and their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<PlanCheck>,
    /// The latest attempt to apply or undo the plan that was refused. Absent if a later attempt succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<PlanRefused>,
    /// Other open plans that touch the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlaps: Vec<PlanOverlap>,
    /// Files in the sandbox that the plan doesn't carry, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<PlanLeftOut>,
    /// Git branches that were created or moved in the sandbox. A plan carries files, not branches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<PlanBranch>,
    /// Work in the sandbox that the plan doesn't carry, one sentence each, including what to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_carried: Vec<String>,
    /// Changes of a command that couldn't be recorded. They are still in the sandbox. Absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<PlanUnrecorded>,
    /// Things that don't work in the sandbox, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// User content that an apply or undo of the plan had to save. Absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rescued: Vec<Rescued>,
    /// A one-line notice for people, for example that the workspace no longer exists. Absent if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A command that is running in a plan's sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCommand {
    /// The id of its job.
    pub job: String,
    /// Who runs the command.
    pub actor: String,
    /// When the command started.
    #[schema(format = "date-time")]
    pub since: String,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCheck {
    /// The command.
    pub command: String,
    /// The state of the check.
    pub state: CheckState,
    /// The id of the job that ran or is running it. Absent if it hasn't run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// How the check ended, in one line. Absent if it hasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When the check ended. Absent if it hasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub at: Option<String>,
}

/// The state of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// It has not run.
    Missing,
    /// It is running.
    Running,
    /// It passed, and the plan hasn't changed since.
    Passed,
    /// It failed.
    Failed,
    /// It ran, but the plan has changed since.
    Outdated,
}

/// Another open plan that touches the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOverlap {
    /// The id of the other plan.
    pub plan: String,
    /// The title of the other plan.
    pub title: String,
    /// The files that both plans touch.
    pub paths: Vec<PlanOverlapPath>,
}

/// A file that two open plans touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOverlapPath {
    /// The path.
    pub path: String,
    /// Whether the plans would conflict if both were applied.
    pub conflicts: bool,
    /// The lines in the other plan's file where they would conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u64>,
}

/// A path that a plan doesn't carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanLeftOut {
    /// The path.
    pub path: String,
    /// The reason: `repository`, `changed_repository`, `history`, `too_large`, `too_long`, `special`, `name`,
    /// `unreadable` or `too_many`.
    pub why: String,
    /// Whether it was created or changed in the sandbox, so that removing the sandbox would lose it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub work: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A git branch that was created or moved in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanBranch {
    /// The name of the branch.
    pub name: String,
    /// The number of commits on it that were made in the sandbox.
    pub commits: u64,
    /// The subject lines of the latest of these commits, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
}

/// Changes of a command that couldn't be recorded. Sealing or applying the plan tries again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanUnrecorded {
    /// The command, in one line.
    pub command: String,
    /// The id of its job. Absent if it wasn't a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Why the changes couldn't be recorded.
    pub why: String,
}

/// The response of `GET /v1/plans`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanList {
    /// The plans, newest first.
    pub plans: Vec<Plan>,
    /// The value of `before` for the next page of older plans. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<String>,
}

/// A summary of the plans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCounts {
    /// The number of plans that are being worked on.
    pub open: u64,
    /// The number of plans that are ready to be applied or discarded.
    pub sealed: u64,
}

/// One event in the history of a plan: the data of an event of `GET /v1/plans/{id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanMoment {
    /// The position in the plan's history.
    pub sequence: u64,
    /// When it happened.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `opened`, `changeset_started`, `changed`, `changeset_closed`, `command_started`, `command_ended`,
    /// `sealed`, `reopened`, `check_started`, `check_ended`, `overlapped`, `applied`, `refused`, `undone`, `refreshed`,
    /// `child_merged`, `rescued`, `set_aside` or `discarded`.
    pub event: String,
    /// Who did it. May be empty.
    pub actor: String,
    /// A one-line description. May be empty.
    pub text: String,
}

/// The response of `GET /v1/plans/{id}/history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanHistory {
    /// The events, oldest first.
    pub moments: Vec<PlanMoment>,
}
