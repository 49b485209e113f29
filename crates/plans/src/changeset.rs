//! Changesets: what one actor changed inside a plan.

use eventlog::UnixMs;
use protocol::{ChangesetId, ChangesetState, PlanId};
use serde::{Deserialize, Serialize};

use crate::{Actor, Recorded};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewChangeset {
    pub actor: Actor,
    /// With what the changes are made: `shell`, `api`, `merge` or the name of a tool.
    pub tool: String,
    pub reason: String,
    /// The job whose changes they are.
    pub job: Option<String>,
}

/// A changeset, as the log has it. It is the body of the changeset's head.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ChangesetRecord {
    pub plan: PlanId,
    /// Its place among the changesets of the plan, from 1.
    pub number: u64,
    pub actor: Actor,
    pub tool: String,
    pub reason: String,
    /// The job whose changes they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub started_at: UnixMs,
    pub state: ChangesetState,
    /// How many changes it has.
    pub entries: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changeset {
    pub id: ChangesetId,
    pub record: ChangesetRecord,
    /// The changes, in the order of their effects; empty in lists.
    pub changes: Vec<Recorded>,
}
