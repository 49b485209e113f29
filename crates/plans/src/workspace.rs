//! What a workspace is.

use std::path::PathBuf;

use eventlog::{Entity, Sequence, UnixMs, Version};
use protocol::{HomeId, PlanId, WorkspaceId, WorkspaceState};
use serde::{Deserialize, Serialize};

use crate::Attempt;

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct WorkspaceRecord {
    pub root: PathBuf,
    /// The device and the inode of the directory, so that another one in its place is told apart.
    pub identity: (u64, u64),
    pub home: HomeId,
    pub registered_at: UnixMs,
    /// Commands that every plan of it must pass.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The landing that is being carried out on it right now.
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
    /// An apply or undo that was left halfway and could not be brought to an end when that was last tried.
    pub stuck: Option<StuckLanding>,
    /// What is weaker here than elsewhere, in one line, as far as this daemon has found out.
    pub notice: Option<String>,
}

impl Workspace {
    /// What the log has of it, with this landing on it.
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

/// An apply or undo that is halfway and cannot be brought to an end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StuckLanding {
    pub landing: String,
    pub what: Option<Attempt>,
    pub plans: Vec<PlanId>,
    /// When it began, if that is known.
    pub since: Option<UnixMs>,
    pub why: String,
}
