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
    /// Where it begins, and where its changes go.
    pub on: PlanOrigin,
    pub title: String,
    /// Commands for `sh -c` that must pass in its sandbox before it can be applied.
    pub checks: Vec<String>,
    /// How its sandbox is made; the best that works if it is not given.
    pub strategy: Option<SandboxStrategy>,
    /// How many commands of its children run at once.
    pub max_parallel: Option<u16>,
    /// What happens to its other children when the command of one fails.
    pub if_child_fails: IfChildFails,
    /// A second one with the same key is the same plan.
    pub idempotency_key: Option<String>,
    pub by: Actor,
}

/// Where a plan begins, and where its changes go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlanOrigin {
    Directory(PathBuf),
    Plan(PlanId),
}

pub type Actor = Arc<str>;

/// What is known of a plan for good.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub workspace: WorkspaceId,
    pub root: PathBuf,
    pub title: String,
    pub opened_by: Actor,
    pub opened_at: UnixMs,
    /// The plan that it merges back into, if that is not the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<PlanId>,
    /// How many plans lie between it and the workspace.
    #[serde(default)]
    pub depth: u16,
    pub strategy: SandboxStrategy,
    /// The home whose machine has the sandbox.
    pub home: HomeId,
    /// How many commands of its children run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u16>,
    /// What happens to its other children when the command of one fails.
    #[serde(default)]
    pub if_child_fails: IfChildFails,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The job that it was opened for. It is submitted right after, so a daemon that dies in between leaves a plan without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A plan, as the log has it. It is the body of the plan's head.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    pub facts: Facts,
    pub state: PlanState,
    pub changed_at: UnixMs,
    /// What its sandbox began with. A refresh moves it.
    pub base: ManifestId,
    /// When that began to be taken from the workspace: what changed there before is in it. A plan that begins with another
    /// one has its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_taken_at: Option<UnixMs>,
    /// Which sandbox of the plan it is; a refresh makes another one.
    pub sandbox: u32,
    /// What the sandbox took over from the workspace.
    #[serde(default)]
    pub ignored: Ignored,
    /// How many changes were recorded.
    pub entries: u64,
    /// How many of them are on top of an earlier base, and count no more. A refresh moves it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outdated_entries: u64,
    pub changesets: u64,
    /// Those that are still open, in the order of their start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_changesets: Vec<OpenChangeset>,
    /// How many paths differ from the base.
    pub files: u64,
    pub fingerprint: ManifestId,
    /// The commands that run in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<Running>,
    /// What must pass, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What is being carried out on the workspace right now. Nothing else changes the plan meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<String>,
    /// The last apply or undo of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// The last attempt that did not come to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// What does not work in the sandbox, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What was in the workspace when the sandbox was made and is not carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What was made or changed in the sandbox and is not carried, by the last look at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncarried: Vec<LeftOut>,
    /// Branches that were made or moved in the sandbox, by the last look at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<PlanBranch>,
    /// What is in the sandbox and could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<Unrecorded>,
    #[serde(default = "yes")]
    pub has_sandbox: bool,
}

/// What a command changed could not be recorded. It is in the sandbox; sealing or applying the plan tries again.
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

/// A command that runs in a sandbox. It is written down before it may run, so that what it did is known to be its doing
/// even if the daemon is killed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Running {
    #[serde(rename = "stay")]
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub actor: Actor,
    /// With what: `shell`, `check`, `merge`.
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
    /// What was in the plan when it began. It is good for nothing else.
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
    /// What became of it, for a plan with this in it.
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
    /// Which of the landing's plans it is, from 0: what it did to each is listed apart.
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The message of the git commit that is still to be made of it. A daemon that dies before that leaves it to the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_wanted: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    Apply,
    Undo,
    /// To move it to the workspace's present state.
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

/// An attempt that did not come to pass. Nothing was changed by it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    pub what: Attempt,
    pub by: Actor,
    pub at: UnixMs,
    /// What is in the way; at most so many as the head has room for.
    pub conflicts: Vec<Conflict>,
}

pub type Plan = Entity<PlanRecord>;

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its place among all changes of the plan, from 1.
    pub entry: u64,
    pub at: UnixMs,
    #[serde(flatten)]
    pub change: Change,
    /// Who else had a command in the sandbox, so that it may be theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_running: Vec<Actor>,
}
