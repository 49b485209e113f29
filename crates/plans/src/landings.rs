//! Landings as the log has them: what an apply or an undo does, path by path, written down before anything is touched.

use eventlog::UnixMs;
use protocol::{ChangesetId, HomeId, PlanId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::{Actor, Attempt};

/// A landing. It is the body of its head; what it does stands in its events.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct LandingRecord {
    pub(crate) state: LandingState,
    pub(crate) what: Attempt,
    pub(crate) by: Actor,
    pub(crate) at: UnixMs,
    pub(crate) workspace: WorkspaceId,
    /// The plan whose sandbox it is carried out on, if that is not the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<PlanId>,
    pub(crate) plans: Vec<PlanId>,
    /// The one changeset that is taken back, if it is not the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changeset: Option<ChangesetId>,
    /// The home whose machine has the workspace.
    pub(crate) home: HomeId,
    /// The message of the git commit that is to be made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// How many effects it has. Fewer events mean that it was never written down whole, and so never begun.
    pub(crate) effects: u64,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LandingState {
    /// It is being written down. Nothing was touched.
    Written,
    Begun,
    Done,
    TakenBack,
    /// It could neither be finished nor taken back, and somebody gave it up. Part of it may be done.
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
