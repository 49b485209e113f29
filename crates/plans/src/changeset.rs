//! Changesets: what one actor changed inside a plan.

use eventlog::UnixMs;
use protocol::{ChangesetId, ChangesetState, PlanId};
use serde::{Deserialize, Serialize};

use crate::{Actor, Recorded, Running, Unrecorded};

/// Who makes changes, with which tool and why: for a changeset, or for a command that produces one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attribution {
    pub actor: Actor,
    /// `shell`, `check`, `api`, `merge` or the name of a tool.
    pub tool: String,
    pub reason: String,
    pub job: Option<String>,
}

impl Attribution {
    /// For changes found in a sandbox without a trace of who made them.
    pub(crate) fn unknown(tool: &str, reason: &str) -> Self {
        Self {
            actor: Actor::from("unknown"),
            tool: tool.to_owned(),
            reason: reason.to_owned(),
            job: None,
        }
    }
}

impl From<&Running> for Attribution {
    fn from(running: &Running) -> Self {
        Self {
            actor: Actor::clone(&running.actor),
            tool: running.tool.clone(),
            reason: running.reason.clone(),
            job: running.job.clone(),
        }
    }
}

impl From<Unrecorded> for Attribution {
    fn from(failed: Unrecorded) -> Self {
        Self {
            actor: failed.actor,
            tool: failed.tool,
            reason: failed.reason,
            job: failed.job,
        }
    }
}

/// A changeset as stored in the log, in the body of the changeset's head.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ChangesetRecord {
    pub plan: PlanId,
    /// Its number among the changesets of the plan, from 1.
    pub number: u64,
    pub actor: Actor,
    pub tool: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub started_at: UnixMs,
    pub state: ChangesetState,
    pub entries: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changeset {
    pub id: ChangesetId,
    pub record: ChangesetRecord,
    /// The changes, in the order of their effects; empty in lists.
    pub changes: Vec<Recorded>,
}
