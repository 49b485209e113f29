//! What is done with plans, and what becomes of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::Plan;
use crate::PlanId;

/// An attempt that did not come to pass. Nothing was changed by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanRefused {
    /// What was attempted: `apply`, `undo` or `refresh`.
    pub what: String,
    /// By whom.
    pub by: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// What is in the way.
    pub conflicts: Vec<PlanConflict>,
}

/// A path where both sides changed and neither can be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanConflict {
    /// The path.
    pub path: String,
    /// Another path that is part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// What is in the way: `content`, `binary`, `both_added`, `deleted_by_workspace`, `deleted_by_plan`, `both_renamed`,
    /// `directory_and_file`, `type` or `moving`.
    pub kind: String,
    /// The same in one line, for people.
    pub text: String,
    /// The places in the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<PlanConflictHunk>,
}

/// A place in a text where both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanConflictHunk {
    /// The line of the workspace's file where it begins, from 1.
    pub line: u64,
    /// What both began with.
    pub base: String,
    /// What the workspace has.
    pub ours: String,
    /// What the plan has.
    pub theirs: String,
}

/// The optional body of `POST /v1/plans/{id}/seal`, `/discard` and `/refresh`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// If it is given, it is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// For discard: even if there is work in it that is not applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_with_work: bool,
}

/// The body of `POST /v1/plans/apply`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPlans {
    /// The plans, of one workspace or one parent: all of them or none.
    pub plans: Vec<String>,
    /// What was seen in each, by its fingerprint, in the same order: refused if there is something else in it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// Tell what would happen, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Also make a git commit of just these paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitPlans>,
}

/// A git commit that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitPlans {
    /// Its message; the titles of the plans if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The body of `POST /v1/plans/{id}/undo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoPlan {
    /// Only this changeset of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// If it is given, it is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Tell what would happen, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What an apply, an undo or a refresh came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOutcome {
    /// What became of it.
    pub outcome: OutcomeKind,
    /// The plans, as they are now.
    pub plans: Vec<Plan>,
    /// The paths that were or would be changed.
    pub paths: Vec<OutcomePath>,
    /// What is in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PlanConflict>,
    /// The git commit that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why the git commit that was wanted could not be made. The apply itself is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_failed: Option<String>,
    /// What a person should know beside that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It was done.
    Done,
    /// It would be done; it was a dry run.
    WouldBeDone,
    /// It cannot be done, and nothing was changed.
    Conflicted,
}

/// A path that was or would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomePath {
    /// The path.
    pub path: String,
    /// `create`, `modify` or `delete`.
    pub kind: String,
    /// Whether the workspace had changed it too and both were merged.
    pub merged: bool,
}

/// What is done with a plan when a command or a turn in it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishPlan {
    /// What to do if it changed something.
    pub then: FinishThen,
    /// With `apply`: also make a git commit of just these paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitPlans>,
    /// Discard the plan if the command changed nothing, because it was opened for this command. Turns do so anyway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard_unchanged: bool,
}

/// What is done with a plan in which a command or a turn changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishThen {
    /// It stays open.
    Keep,
    /// It is sealed, and waits for review.
    Seal,
    /// It is sealed and, if the command or turn succeeded, checked and applied.
    Apply,
}

/// What became of a plan after a command or a turn in it had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanFinish {
    /// What became of it.
    pub outcome: FinishOutcome,
    /// Why it was not applied, in one word: `command_failed`, `turn_not_done`, `input_cut`, `checks`, `not_carried`,
    /// `not_recorded`, `interrupted` or `refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many files were applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<OutcomePath>,
    /// The git commit that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Why the git commit that was wanted could not be made, after everything was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_failed: Option<String>,
    /// What a person should know beside that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of a plan after a command or a turn in it had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishOutcome {
    /// Nothing was changed.
    Unchanged,
    /// It is open.
    Open,
    /// It is sealed, and waits for review.
    Sealed,
    /// It was applied.
    Done,
    /// It was not applied, because others have changed the same places.
    Conflicted,
    /// It was not applied, for another reason.
    NotApplied,
    /// Somebody else had applied, undone or discarded it before.
    Over,
}

/// The optional body of `POST /v1/plans/{id}/check`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckPlan {
    /// Commands to be added to its checks first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Run those again that have passed as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// The optional body of `POST /v1/plans/{id}/forget`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetPlan {
    /// If it is given, it is refused unless the plan is at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The answer of `POST /v1/plans/{id}/forget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanForgotten {
    /// The plan that is gone.
    pub plan: String,
    /// How many bytes of the disk that freed.
    pub bytes: u64,
}

/// The body of `POST /v1/plans/gc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectPlans {
    /// Sandboxes of plans that were applied, undone or discarded longer ago than this; one day if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// Tell what would be freed, and free nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The answer of `POST /v1/plans/gc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlansCollected {
    /// The plans whose sandboxes were or would be freed.
    pub sandboxes: Vec<CollectedSandbox>,
    /// How many bases were or would be freed.
    pub bases: u64,
    /// How many bytes that is altogether.
    pub bytes: u64,
    /// Plans that have unapplied work, and so are kept whatever their age.
    #[schema(value_type = Vec<String>)]
    pub kept: Vec<PlanId>,
}

/// A sandbox that was or would be freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedSandbox {
    /// Its plan.
    #[schema(value_type = String)]
    pub plan: PlanId,
    /// How many bytes.
    pub bytes: u64,
}
