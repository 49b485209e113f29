//! The workspace types.

use std::path::PathBuf;

use eventlog::{Entity, Sequence, UnixMs, Version};
use protocol::{HomeId, PlanId, WorkspaceId, WorkspaceState};
use serde::{Deserialize, Serialize};

use crate::Attempt;

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceRecord {
    pub root: PathBuf,
    /// The device and inode of the directory, to detect another one at its path.
    pub identity: (u64, u64),
    pub home: HomeId,
    pub registered_at: UnixMs,
    /// Commands that each of its plans must pass.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The landing in progress on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Workspace {
    pub id: WorkspaceId,
    pub version: Version,
    pub record: WorkspaceRecord,
    pub presence: WorkspaceState,
    pub is_git: bool,
    pub open_plans: u64,
    /// An apply or undo that was interrupted and couldn't be finished at the last attempt.
    pub stuck: Option<StuckLanding>,
    /// Which guarantees are weaker here than elsewhere, in one line, as far as this daemon has found out.
    pub notice: Option<String>,
}

impl Workspace {
    /// Its log entity, with this landing on it.
    pub(crate) fn with_landing(&self, landing: Option<String>) -> Entity<WorkspaceRecord> {
        Entity {
            id: self.id,
            version: self.version,
            last_sequence: Sequence::START,
            record: WorkspaceRecord {
                landing,
                ..self.record.clone()
            },
        }
    }
}

/// An interrupted apply or undo that can't be finished.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StuckLanding {
    pub landing: String,
    pub what: Option<Attempt>,
    pub plans: Vec<PlanId>,
    /// When it began, if that is known.
    pub since: Option<UnixMs>,
    pub why: String,
}
