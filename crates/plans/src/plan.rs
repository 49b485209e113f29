//! Plans and their parts, as the log stores them.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Entity, UnixMs};
use protocol::{
    ChangesetId, CheckState, HomeId, IfChildFails, PlanBranch, PlanId, PlanState, SandboxStrategy,
    WorkspaceId,
};
use serde::{Deserialize, Serialize};

use crate::{Attribution, Change, Conflict, Ignored, LeftOut, ManifestId};

#[derive(Clone, Debug)]
pub struct NewPlan {
    /// Where it starts, and where its changes go.
    pub on: PlanOrigin,
    pub title: String,
    /// Commands for `sh -c` that must pass in its sandbox before it can be applied.
    pub checks: Vec<String>,
    /// How to make its sandbox; defaults to the best strategy that works.
    pub strategy: Option<SandboxStrategy>,
    /// How many of its children's commands run at once.
    pub max_parallel: Option<u16>,
    /// What happens to its other children when one child's command fails.
    pub if_child_fails: IfChildFails,
    /// Another request with the same key returns the same plan.
    pub idempotency_key: Option<String>,
    pub by: Actor,
}

/// Where a plan starts, and where its changes go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlanOrigin {
    Directory(PathBuf),
    Plan(PlanId),
}

pub type Actor = Arc<str>;

/// The facts about a plan that never change.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub workspace: WorkspaceId,
    pub root: PathBuf,
    pub title: String,
    pub opened_by: Actor,
    pub opened_at: UnixMs,
    /// The plan that it merges back into, if that isn't the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<PlanId>,
    /// How many plans are between it and the workspace.
    #[serde(default)]
    pub depth: u16,
    pub strategy: SandboxStrategy,
    /// The home on the machine that has the sandbox.
    pub home: HomeId,
    /// How many of its children's commands run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u16>,
    /// What happens to its other children when one child's command fails.
    #[serde(default)]
    pub if_child_fails: IfChildFails,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The job that it was opened for. The job is submitted right after, so a daemon that dies in between leaves a plan
    /// without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A plan as stored in the log, in the body of the plan's head.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    pub facts: Facts,
    pub state: PlanState,
    pub changed_at: UnixMs,
    /// The base of its sandbox. A refresh changes it.
    pub base: ManifestId,
    /// When taking that base from the workspace began: it includes all earlier changes there. A plan that starts from
    /// another plan has that plan's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_taken_at: Option<UnixMs>,
    /// The number of the plan's current sandbox; a refresh makes a new one.
    pub sandbox: u32,
    /// What the sandbox took over from the workspace.
    #[serde(default)]
    pub ignored: Ignored,
    /// How many changes were recorded.
    pub entries: u64,
    /// How many of them are on top of an earlier base, and no longer count. A refresh changes it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outdated_entries: u64,
    pub changesets: u64,
    /// The open ones, in the order in which they were started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_changesets: Vec<OpenChangeset>,
    /// How many paths differ from the base.
    pub files: u64,
    pub fingerprint: ManifestId,
    /// The commands that run in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<Running>,
    /// The checks that must pass, and their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The landing in progress on the workspace. Nothing else changes the plan in the meantime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<String>,
    /// Its last apply or undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// The last attempt that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// What doesn't work in the sandbox, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What was in the workspace when the sandbox was made, but isn't carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What was created or changed in the sandbox but isn't carried, as of the last capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncarried: Vec<LeftOut>,
    /// Branches that were created or moved in the sandbox, as of the last capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<PlanBranch>,
    /// What is in the sandbox and couldn't be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<Unrecorded>,
    #[serde(default = "yes")]
    pub has_sandbox: bool,
}

/// The changes of a command that couldn't be recorded. They are in the sandbox; sealing or applying the plan
/// tries again.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Unrecorded {
    pub actor: Actor,
    pub tool: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub why: String,
}

impl Unrecorded {
    pub(crate) fn new(by: Attribution, why: String) -> Self {
        Self {
            actor: by.actor,
            tool: by.tool,
            reason: by.reason,
            job: by.job,
            why,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct OpenChangeset {
    pub id: ChangesetId,
    pub actor: Actor,
}

/// A command that runs in a sandbox. It is recorded before it may run, so that its changes can be attributed to it even
/// if the daemon is killed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Running {
    #[serde(rename = "stay")]
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub actor: Actor,
    /// The tool: `shell`, `check`, `merge`.
    pub tool: String,
    pub reason: String,
    pub since: UnixMs,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The command, for `sh -c`.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<CheckRun>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CheckRun {
    pub job: String,
    /// The plan's fingerprint when it started. The result is valid only for that.
    pub fingerprint: ManifestId,
    /// How it ended; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<CheckEnd>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CheckEnd {
    pub passed: bool,
    pub text: String,
    pub at: UnixMs,
}

impl Check {
    /// Its state, for a plan with this fingerprint.
    #[must_use]
    pub fn state(&self, fingerprint: ManifestId) -> CheckState {
        match &self.run {
            None => CheckState::Missing,
            Some(CheckRun { ended: None, .. }) => CheckState::Running,
            Some(run) if run.fingerprint != fingerprint => CheckState::Outdated,
            Some(CheckRun {
                ended: Some(CheckEnd { passed: true, .. }),
                ..
            }) => CheckState::Passed,
            Some(_) => CheckState::Failed,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Landed {
    pub landing: String,
    /// The plan's index among those of the landing, from 0: the effects of each are listed separately.
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The message of the git commit that still has to be made of it. If a daemon dies before that, the next one makes
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_wanted: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    Apply,
    Undo,
    /// Move it to the workspace's current state.
    Refresh,
}

impl Attempt {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Refresh => "refresh",
        }
    }
}

/// An attempt that was refused. It changed nothing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    pub what: Attempt,
    pub by: Actor,
    pub at: UnixMs,
    /// The conflicts; at most as many as fit in the head.
    pub conflicts: Vec<Conflict>,
}

pub type Plan = Entity<PlanRecord>;

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number among all changes of the plan, from 1.
    pub entry: u64,
    pub at: UnixMs,
    #[serde(flatten)]
    pub change: Change,
    /// Who else had a command running in the sandbox, so that it may be theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_running: Vec<Actor>,
}
