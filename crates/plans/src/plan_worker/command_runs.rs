//! Which commands this daemon is running in sandboxes.
//!
//! The log lists a command as running from before it starts until its changes are recorded, or can't be. It stays
//! listed if the daemon is killed in between, or if the disk is full. A command that isn't on the list here has ended,
//! whatever the log says; the plan's worker records that before it does anything else.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Plan, Running, Unrecorded};

#[derive(Debug, Default)]
pub(crate) struct CommandRuns {
    /// Guards the lists; only looked up and replaced under it.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    inside: HashSet<String>,
    /// Why a command's changes weren't recorded, for those with an end that isn't in the log.
    failed: HashMap<String, String>,
}

impl CommandRuns {
    pub(crate) fn begin(&self, run_id: &str) {
        self.known().inside.insert(run_id.to_owned());
    }

    /// It has ended, and the log has that.
    pub(crate) fn end(&self, run_id: &str) {
        let mut known = self.known();
        known.inside.remove(run_id);
        known.failed.remove(run_id);
    }

    /// It has ended, but the log doesn't have that.
    pub(crate) fn end_unwritten(&self, run_id: &str, why: String) {
        let mut known = self.known();
        known.inside.remove(run_id);
        known.failed.insert(run_id.to_owned(), why);
    }

    pub(crate) fn is_inside(&self, run_id: &str) -> bool {
        self.known().inside.contains(run_id)
    }

    /// A plan of this home, without the commands that have ended.
    pub(crate) fn seen(&self, mut plan: Plan) -> Plan {
        let record = &mut plan.record;
        if record.running.is_empty() || record.landing.is_some() {
            return plan;
        }
        let known = self.known();
        let (inside, over): (Vec<Running>, Vec<Running>) = std::mem::take(&mut record.running)
            .into_iter()
            .partition(|running| known.inside.contains(&running.id));
        record.running = inside;
        if let Some(running) = over.into_iter().next_back() {
            let why = known.failed.get(&running.id).cloned();
            let why = why.unwrap_or_else(|| "the daemon ended before that was done".to_owned());
            record.unrecorded = Some(Unrecorded::new((&running).into(), why));
        }
        plan
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
