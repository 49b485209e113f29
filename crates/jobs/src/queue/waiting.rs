//! The queue: jobs that wait for their turn, for a time, or for other jobs.
//!
//! Invariants:
//!
//! 1. An entry is in exactly one state (`EntryState`), and in the index of that state.
//! 2. An entry that waits for jobs is listed under each of them in `dependents`, and nothing else is.
//! 3. An entry with a deadline is in `deadlines` until that has passed; then its state is `Expired`, and it is
//!    never taken.
//!
//! Every operation costs a logarithm of the number of entries for each entry that it moves.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use eventlog::Version;
use protocol::JobId;

use super::{entry::Entry, ready::Ready};
use crate::{
    answers::WaitingFor,
    job::{Job, Pool, WaitsUntil},
    pools::ByPool,
};
use eventlog::UnixMs;

/// How many jobs may wait. Each takes less than a kilobyte of memory, and the whole queue is read when a daemon
/// starts. Further submissions are refused.
pub(crate) const QUEUE_LIMIT: usize = 200_000;

/// The end of a job that others may wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DependencyEnd {
    Succeeded,
    /// It failed, was cancelled, or doesn't exist.
    NotSucceeded,
}

/// The jobs that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    slots: HashMap<JobId, QueuedEntry>,
    /// Lanes span pools, so each pool is told how many jobs run in a lane.
    ready: ByPool<Ready>,
    /// How many entries only handle the end of another job.
    followers: usize,
    /// Entries that only wait for a time, by that time.
    delayed: BTreeSet<(UnixMs, JobId)>,
    deadlines: BTreeSet<(UnixMs, JobId)>,
    expired: BTreeSet<JobId>,
    /// By the job that they wait for.
    dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    arrivals: u64,
}

#[derive(Debug)]
struct QueuedEntry {
    entry: Entry,
    /// The jobs that it waits for.
    unfinished: BTreeSet<JobId>,
    state: EntryState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EntryState {
    Ready,
    Delayed(UnixMs),
    ForJobs,
    Expired,
}

impl Queue {
    /// The number of jobs.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many entries only wait for a worker and room in their lane, as of the last [`Queue::advance`].
    #[cfg(test)]
    pub(crate) fn ready_len(&self) -> usize {
        Pool::ALL.iter().map(|pool| self.ready[*pool].len()).sum()
    }

    /// How many entries only handle the end of another job.
    pub(crate) fn followers(&self) -> usize {
        self.followers
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&Entry> {
        self.slots.get(&id).map(|slot| &slot.entry)
    }

    /// Inserts the current version of a job, with those of its dependencies that haven't succeeded yet. It
    /// replaces an older version, and keeps its position among equals; it doesn't replace a newer one. A job that
    /// doesn't wait is removed.
    pub(crate) fn insert(&mut self, job: &Job, unfinished: impl IntoIterator<Item = JobId>) {
        let known = self.get(job.id).map(|entry| (entry.version, entry.arrival));
        if known.is_some_and(|(version, _)| job.version < version) {
            return;
        }
        self.remove(job.id);
        let arrival = known.map_or(self.arrivals, |(_, arrival)| arrival);
        let Some(entry) = Entry::of(job, arrival) else {
            return;
        };
        if known.is_none() {
            self.arrivals += 1;
        }
        self.add(entry, unfinished.into_iter().collect());
    }

    /// Removes an entry. Its lane doesn't change: the job didn't run.
    pub(crate) fn remove(&mut self, id: JobId) -> Option<Entry> {
        let slot = self.slots.remove(&id)?;
        self.leave(&slot);
        if slot.entry.waits_until == WaitsUntil::End {
            self.followers -= 1;
        }
        if let Some(deadline) = slot.entry.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        for dependency in &slot.unfinished {
            self.stop_waiting(*dependency, id);
        }
        Some(slot.entry)
    }

    /// The best entry of a pool that may start now, without taking it.
    pub(crate) fn first(&mut self, pool: Pool, now: UnixMs) -> Option<&Entry> {
        self.advance(now);
        let key = self.ready[pool].first()?;
        self.get(key.id)
    }

    /// Takes the best entry of a pool that may start now. It is removed from the queue and counts in its lane:
    /// the caller puts it back, or later frees the lane.
    pub(crate) fn take(&mut self, pool: Pool, now: UnixMs) -> Option<Entry> {
        self.advance(now);
        let key = self.ready[pool].first()?;
        let entry = self.remove(key.id)?;
        if let Some(lane) = &entry.lane {
            let running = self.running_in(&lane.name).saturating_add(1);
            self.lane_set(&lane.name, running);
        }
        Some(entry)
    }

    /// Undoes a take. If the job has been inserted again since, that version stays unless it is older.
    pub(crate) fn put_back(&mut self, entry: Entry) {
        if let Some(lane) = &entry.lane {
            self.lane_freed(&lane.name);
        }
        let known = self.get(entry.id).map(|known| known.version);
        if known.is_none_or(|version: Version| version < entry.version) {
            self.remove(entry.id);
            self.add(entry, BTreeSet::new());
        }
    }

    /// Sets how many jobs run in a lane, on any daemon.
    pub(crate) fn lane_set(&mut self, lane: &Arc<str>, running: u32) {
        for pool in Pool::ALL {
            self.ready[pool].set_running(lane, running);
        }
    }

    /// Counts one less running job in a lane.
    pub(crate) fn lane_freed(&mut self, lane: &Arc<str>) {
        let running = self.running_in(lane).saturating_sub(1);
        self.lane_set(lane, running);
    }

    fn running_in(&self, lane: &str) -> u32 {
        self.ready[Pool::Workers].running(lane)
    }

    /// How many jobs run in a lane, as far as is known here.
    #[cfg(test)]
    pub(crate) fn lane_running(&self, lane: &str) -> u32 {
        self.running_in(lane)
    }

    /// Handles the end of a job. If it succeeded, jobs that waited for nothing else are free. If not, the
    /// returned jobs must fail now: they stay, and are never taken, until they are removed. Calling this twice
    /// does no harm.
    pub(crate) fn dependency_ended(&mut self, id: JobId, end: DependencyEnd) -> Vec<JobId> {
        let mut failing = Vec::new();
        for dependent in self.dependents.get(&id).cloned().unwrap_or_default() {
            let Some(slot) = self.slots.get_mut(&dependent) else {
                continue;
            };
            if end == DependencyEnd::NotSucceeded && slot.entry.waits_until == WaitsUntil::Success {
                failing.push(dependent);
                continue;
            }
            slot.unfinished.remove(&id);
            let is_free = slot.unfinished.is_empty() && slot.state == EntryState::ForJobs;
            self.stop_waiting(id, dependent);
            if is_free {
                self.enter(dependent);
            }
        }
        failing
    }

    pub(crate) fn waits_for(&self) -> impl Iterator<Item = JobId> + '_ {
        self.dependents.keys().copied()
    }

    /// The lanes in which queued jobs wait because they are full, as far as is known here.
    pub(crate) fn full_lanes(&self) -> impl Iterator<Item = &Arc<str>> {
        Pool::ALL.into_iter().flat_map(|pool| self.ready[pool].full())
    }

    #[cfg(test)]
    pub(crate) fn is_waited_for(&self, id: JobId) -> bool {
        self.dependents.contains_key(&id)
    }

    /// Makes entries ready once their time has come, and expires those with a deadline that has passed.
    pub(crate) fn advance(&mut self, now: UnixMs) {
        // Deadlines come first: an expired entry doesn't become ready.
        while let Some((_, id)) = pop_until(&mut self.deadlines, now) {
            let Some(mut slot) = self.slots.remove(&id) else {
                continue;
            };
            self.leave(&slot);
            slot.state = EntryState::Expired;
            self.expired.insert(id);
            self.slots.insert(id, slot);
        }
        while let Some((_, id)) = pop_until(&mut self.delayed, now) {
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.state = EntryState::Ready;
                self.ready[slot.entry.pool].insert(&slot.entry);
            }
        }
    }

    /// Up to `limit` entries with a deadline that has passed. They stay until they are removed.
    pub(crate) fn expired(&mut self, now: UnixMs, limit: usize) -> Vec<JobId> {
        self.advance(now);
        self.expired.iter().take(limit).copied().collect()
    }

    /// When [`Queue::advance`] has something to do next.
    pub(crate) fn next_due(&self) -> Option<UnixMs> {
        let times = [self.delayed.first(), self.deadlines.first()];
        times.into_iter().flatten().map(|(moment, _)| *moment).min()
    }

    /// Why an entry doesn't run yet; `None` if it isn't here. `capacity` returns how many jobs of a pool run, and
    /// how many may.
    pub(crate) fn why(
        &self,
        id: JobId,
        now: UnixMs,
        capacity: impl Fn(Pool) -> (usize, usize),
    ) -> Option<WaitingFor> {
        let slot = self.slots.get(&id)?;
        let pool = slot.entry.pool;
        let for_worker = || {
            let (running, limit) = capacity(pool);
            WaitingFor::Worker { running, limit }
        };
        let for_turn = || match &slot.entry.lane {
            Some(lane) if !self.ready[pool].has_room(lane) => WaitingFor::Lane,
            _ => for_worker(),
        };
        Some(match slot.state {
            EntryState::ForJobs => WaitingFor::Jobs(slot.unfinished.iter().copied().collect()),
            EntryState::Delayed(moment) if now < moment => WaitingFor::Time(moment),
            EntryState::Delayed(_) | EntryState::Ready => for_turn(),
            // It is about to be failed.
            EntryState::Expired => for_worker(),
        })
    }

    /// The number of lanes that are kept.
    #[cfg(test)]
    pub(super) fn lanes(&self) -> usize {
        self.ready[Pool::Workers].lanes()
    }

    fn add(&mut self, entry: Entry, unfinished: BTreeSet<JobId>) {
        let id = entry.id;
        if entry.waits_until == WaitsUntil::End {
            self.followers += 1;
        }
        if let Some(deadline) = entry.deadline {
            self.deadlines.insert((deadline, id));
        }
        for dependency in &unfinished {
            self.dependents.entry(*dependency).or_default().insert(id);
        }
        let slot = QueuedEntry {
            entry,
            unfinished,
            state: EntryState::ForJobs,
        };
        self.slots.insert(id, slot);
        self.enter(id);
    }

    /// Adds an entry that is in no index to the right one.
    fn enter(&mut self, id: JobId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        slot.state = match slot.entry.not_before {
            _ if !slot.unfinished.is_empty() => EntryState::ForJobs,
            // Only `advance` knows the time, and whether this has passed.
            Some(moment) => EntryState::Delayed(moment),
            None => EntryState::Ready,
        };
        match slot.state {
            EntryState::Ready => self.ready[slot.entry.pool].insert(&slot.entry),
            EntryState::Delayed(moment) => {
                self.delayed.insert((moment, id));
            }
            EntryState::ForJobs | EntryState::Expired => {}
        }
    }

    /// Removes an entry from the index of its state.
    fn leave(&mut self, slot: &QueuedEntry) {
        let id = slot.entry.id;
        match slot.state {
            EntryState::Ready => self.ready[slot.entry.pool].remove(&slot.entry),
            EntryState::Delayed(moment) => {
                self.delayed.remove(&(moment, id));
            }
            EntryState::ForJobs => {}
            EntryState::Expired => {
                self.expired.remove(&id);
            }
        }
    }

    fn stop_waiting(&mut self, dependency: JobId, dependent: JobId) {
        if let Some(dependents) = self.dependents.get_mut(&dependency) {
            dependents.remove(&dependent);
            if dependents.is_empty() {
                self.dependents.remove(&dependency);
            }
        }
    }
}

/// Removes the first entry if its time has come.
fn pop_until(times: &mut BTreeSet<(UnixMs, JobId)>, now: UnixMs) -> Option<(UnixMs, JobId)> {
    let first = *times.first().filter(|(moment, _)| *moment <= now)?;
    times.remove(&first);
    Some(first)
}
