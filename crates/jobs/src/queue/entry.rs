//! What the queue stores about a job.

use eventlog::Version;
use protocol::{JobId, JobIfInterrupted};

use crate::{
    AGEING_MS,
    job::{Job, Lane, Pool, Priority, State, WaitsUntil},
};
use eventlog::UnixMs;

/// A job that waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: JobId,
    /// The version that a claim must name.
    pub(crate) version: Version,
    pub(crate) priority: Priority,
    pub(crate) lane: Option<Lane>,
    pub(crate) since: UnixMs,
    pub(crate) not_before: Option<UnixMs>,
    pub(crate) deadline: Option<UnixMs>,
    pub(crate) if_interrupted: JobIfInterrupted,
    pub(crate) pool: Pool,
    pub(crate) waits_until: WaitsUntil,
    /// The order of arrival, which decides between equal ranks.
    pub(super) arrival: u64,
}

/// The position of an entry among those that are ready. The lowest goes first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    rank: i64,
    arrival: u64,
    pub(super) id: JobId,
}

impl Entry {
    /// The entry for a job; `None` if it doesn't wait.
    pub(super) fn of(job: &Job, arrival: u64) -> Option<Self> {
        let State::Queued {
            since, not_before, ..
        } = job.record.state
        else {
            return None;
        };
        let facts = &job.record.facts;
        Some(Self {
            id: job.id,
            version: job.version,
            priority: facts.priority,
            lane: facts.lane.clone(),
            since,
            not_before,
            deadline: facts.deadline,
            if_interrupted: facts.if_interrupted,
            pool: facts.pool,
            waits_until: facts.waits_until,
            arrival,
        })
    }

    /// The rank. It doesn't depend on the current time: a job that waits longer is ahead by the same amount
    /// forever, so ranks never have to be updated.
    pub(super) fn key(&self) -> Key {
        let since_ms = i64::try_from(self.since.0).unwrap_or(i64::MAX);
        let step_ms = i64::try_from(AGEING_MS).unwrap_or(i64::MAX);
        let head_start_ms = i64::from(self.priority.level()).saturating_mul(step_ms);
        Key {
            rank: since_ms.saturating_sub(head_start_ms),
            arrival: self.arrival,
            id: self.id,
        }
    }
}
