//! Landings in the log: what an apply or an undo does, path by path, recorded before anything is touched.

use eventlog::UnixMs;
use protocol::{ChangesetId, HomeId, PlanId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::{Actor, Attempt};

/// A landing. This is the body of its head; its events list its effects.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct LandingRecord {
    pub(crate) state: LandingState,
    pub(crate) what: Attempt,
    pub(crate) by: Actor,
    pub(crate) at: UnixMs,
    pub(crate) workspace: WorkspaceId,
    /// The plan that owns the sandbox it is carried out on, if that isn't the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<PlanId>,
    pub(crate) plans: Vec<PlanId>,
    /// The changeset to undo, if it isn't the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changeset: Option<ChangesetId>,
    /// The home on the machine that has the workspace.
    pub(crate) home: HomeId,
    /// The message of the git commit to make of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// How many effects it has. Fewer events mean that it was never recorded completely, and so never begun.
    pub(crate) effects: u64,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LandingState {
    /// It is being recorded. Nothing was touched.
    Written,
    Begun,
    Done,
    TakenBack,
    /// It could be neither finished nor rolled back, and was abandoned. Part of it may be done.
    SetAside,
}

impl LandingState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Begun => "begun",
            Self::Done => "done",
            Self::TakenBack => "taken_back",
            Self::SetAside => "set_aside",
        }
    }
}
