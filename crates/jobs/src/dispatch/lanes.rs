//! Lanes: limits that jobs share, across all daemons that share the log.
//!
//! A lane is a head that names the jobs running in it. Every commit that claims or ends a job of the lane also
//! writes the lane and names the version it saw. So the limit holds however many daemons claim at once.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use eventlog::{CommitError, Head, StoredHead, Version, Write};
use serde::{Deserialize, Serialize};

use crate::{history, queue::Queue};

/// The status of a lane without running jobs.
pub(crate) const IDLE: &str = "idle";

/// A lane as last read from the log.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) version: Version,
    pub(crate) running: BTreeSet<String>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            version: Version::NONE,
            running: BTreeSet::new(),
        }
    }
}

/// The head of a lane.
#[derive(Serialize, Deserialize)]
struct Body {
    name: Arc<str>,
    running: BTreeSet<String>,
}

impl Lane {
    /// A lane and its name, from its head. `None` if the head can't be read.
    pub(crate) fn read(stored: &StoredHead) -> Option<(Arc<str>, Self)> {
        let body: Body = serde_json::from_slice(&stored.head.body).ok()?;
        let lane = Self {
            version: stored.version,
            running: body.running,
        };
        Some((body.name, lane))
    }

    /// A lane from its head. If the head can't be read, the lane counts as empty, and the next claim writes it
    /// again.
    pub(crate) fn of(stored: &StoredHead) -> Self {
        let read = Self::read(stored).map(|(_, lane)| lane);
        read.unwrap_or_else(|| Self {
            version: stored.version,
            ..Self::default()
        })
    }

    /// The write that makes these the running jobs of the lane.
    pub(crate) fn write(&self, name: &Arc<str>, running: BTreeSet<String>) -> Result<Write, CommitError> {
        let status = if running.is_empty() { IDLE } else { "busy" };
        let body = Body {
            name: Arc::clone(name),
            running,
        };
        Ok(Write {
            stream: history::lane_stream(name),
            expected: self.version,
            head: Some(Head::json(history::LANE_KIND, status, &body)?),
            events: Vec::new(),
        })
    }
}

/// The known lanes. An unknown lane counts as new, and the log refuses the write if it isn't.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    known: HashMap<Arc<str>, Lane>,
}

impl Lanes {
    pub(super) fn get(&self, name: &str) -> Lane {
        self.known.get(name).cloned().unwrap_or_default()
    }

    /// Updates a lane, and tells the queue how full it is.
    pub(super) fn put(&mut self, name: Arc<str>, lane: Lane, queue: &mut Queue) {
        let running = u32::try_from(lane.running.len()).unwrap_or(u32::MAX);
        queue.lane_set(&name, running);
        self.known.insert(name, lane);
    }
}
