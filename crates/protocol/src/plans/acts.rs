//! Operations on plans, and their results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::Plan;
use crate::PlanId;

/// An attempt that was refused. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanRefused {
    /// The operation: `apply`, `undo` or `refresh`.
    pub what: String,
    /// Who attempted it.
    pub by: String,
    /// When it was attempted.
    #[schema(format = "date-time")]
    pub at: String,
    /// The conflicts.
    pub conflicts: Vec<PlanConflict>,
}

/// A path that both sides changed in ways that can't be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanConflict {
    /// The path.
    pub path: String,
    /// Another path involved in the conflict. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The kind of conflict: `content`, `binary`, `both_added`, `deleted_by_workspace`, `deleted_by_plan`,
    /// `both_renamed`, `directory_and_file`, `type` or `moving`.
    pub kind: String,
    /// A one-line description of the conflict, for people.
    pub text: String,
    /// The conflicting parts of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<PlanConflictHunk>,
}

/// A part of a text that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanConflictHunk {
    /// The line in the workspace's file where it starts, counting from 1.
    pub line: u64,
    /// The original text of both sides.
    pub base: String,
    /// The workspace's text.
    pub ours: String,
    /// The plan's text.
    pub theirs: String,
}

/// The optional body of `POST /v1/plans/{id}/seal`, `/discard` and `/refresh`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// If given, the request is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// For discard: discard the plan even if it has work that wasn't applied. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_with_work: bool,
}

/// The body of `POST /v1/plans/apply`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPlans {
    /// The ids of the plans to apply. They must have the same workspace or the same parent. Either all of
    /// them are applied or none.
    pub plans: Vec<String>,
    /// The fingerprint of each plan that you reviewed, in the same order. The request is refused if a plan's
    /// content has changed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// Report what would happen, without changing anything. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// If given, also make a git commit that contains only these paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitPlans>,
}

/// A git commit to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitPlans {
    /// The commit message. Defaults to the titles of the plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The body of `POST /v1/plans/{id}/undo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoPlan {
    /// The id of the only changeset to undo. Defaults to the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// If given, the request is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Report what would happen, without changing anything. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The result of an apply, undo or refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOutcome {
    /// The outcome.
    pub outcome: OutcomeKind,
    /// The plans in their current state.
    pub plans: Vec<Plan>,
    /// The paths that were changed, or would be in a dry run.
    pub paths: Vec<OutcomePath>,
    /// The conflicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PlanConflict>,
    /// The git commit that was made. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why the requested git commit couldn't be made. The apply itself is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_failed: Option<String>,
    /// Other information for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It succeeded.
    Done,
    /// It would succeed. This was a dry run.
    WouldBeDone,
    /// There are conflicts. Nothing was changed.
    Conflicted,
}

/// A path that was changed, or would be in a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomePath {
    /// The path.
    pub path: String,
    /// The change: `create`, `modify` or `delete`.
    pub kind: String,
    /// Whether the workspace had also changed the path, and both changes were merged.
    pub merged: bool,
}

/// What to do with a plan when a command or turn in it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishPlan {
    /// What to do if the command or turn changed something.
    pub then: FinishThen,
    /// With `apply`: also make a git commit that contains only these paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitPlans>,
    /// Discard the plan if the command changed nothing, because the plan was opened for this command. Turns
    /// always do this. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard_unchanged: bool,
}

/// What to do with a plan in which a command or turn changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishThen {
    /// Keep the plan open.
    Keep,
    /// Seal the plan for review.
    Seal,
    /// Seal the plan and, if the command or turn succeeded, check and apply it.
    Apply,
}

/// What happened to a plan after a command or turn in it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanFinish {
    /// The outcome.
    pub outcome: FinishOutcome,
    /// Why the plan wasn't applied: `command_failed`, `turn_not_done`, `input_cut`, `checks`, `not_carried`,
    /// `not_recorded`, `interrupted` or `refused`. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The same reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number of files that were applied. Absent if the plan wasn't applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The first of the paths that were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<OutcomePath>,
    /// The git commit that was made. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why the requested git commit couldn't be made after everything was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_failed: Option<String>,
    /// Other information for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The outcome for a plan after a command or turn in it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishOutcome {
    /// Nothing was changed.
    Unchanged,
    /// The plan is open.
    Open,
    /// The plan is sealed and ready for review.
    Sealed,
    /// The plan was applied.
    Done,
    /// The plan wasn't applied, because it conflicts with changes that others made.
    Conflicted,
    /// The plan wasn't applied, for another reason.
    NotApplied,
    /// The plan had already been applied, undone or discarded by someone else.
    Over,
}

/// The optional body of `POST /v1/plans/{id}/check`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    /// Commands to add to the plan's checks before running them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Also rerun checks that have passed. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// The optional body of `POST /v1/plans/{id}/forget`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetPlan {
    /// If given, the request is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The response of `POST /v1/plans/{id}/forget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanForgotten {
    /// The id of the plan that was removed.
    pub plan: String,
    /// How much disk space was freed, in bytes.
    pub bytes: u64,
}

/// The body of `POST /v1/plans/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectPlans {
    /// Remove sandboxes of plans that were applied, undone or discarded longer ago than this, in
    /// milliseconds. Defaults to 1 day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// Report what would be freed, without freeing anything. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The response of `POST /v1/plans/gc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlansCollected {
    /// The sandboxes that were freed, or would be in a dry run.
    pub sandboxes: Vec<CollectedSandbox>,
    /// The number of bases that were freed, or would be in a dry run.
    pub bases: u64,
    /// The total disk space, in bytes.
    pub bytes: u64,
    /// Plans that were kept regardless of age because they have unapplied work.
    #[schema(value_type = Vec<String>)]
    pub kept: Vec<PlanId>,
}

/// A sandbox that was freed, or would be in a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedSandbox {
    /// The id of its plan.
    #[schema(value_type = String)]
    pub plan: PlanId,
    /// The disk space of the sandbox, in bytes.
    pub bytes: u64,
}
