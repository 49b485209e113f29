//! Jobs that only wait for their turn, behind the limits of their lanes.
//!
//! Jobs of one lane with the same limit are a group. A group as a whole has room or doesn't, so it is enough to
//! expose the first job of each group that has room: `fronts` has these, together with all jobs without a lane,
//! and the best of them is next. When the count of a lane changes by one, exactly one of its groups opens or
//! closes. So a lane with very many blocked jobs costs the others nothing.
//!
//! Invariants:
//!
//! 1. A group exposes its first entry if it has room, and otherwise nothing; `fronts` has exactly what groups
//!    expose and the entries without a lane.
//! 2. A lane is kept as long as something is running or waiting in it. No group is empty.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZeroU16,
    sync::Arc,
};

use super::entry::{Entry, Key};
use crate::job::Lane;

#[derive(Debug, Default)]
pub(super) struct Ready {
    fronts: BTreeSet<Key>,
    lanes: HashMap<Arc<str>, LaneState>,
    len: usize,
}

#[derive(Debug, Default)]
struct LaneState {
    running: u32,
    groups: BTreeMap<NonZeroU16, Group>,
}

#[derive(Debug, Default)]
struct Group {
    entries: BTreeSet<Key>,
    shown: Option<Key>,
}

impl Ready {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The best entry that may start.
    pub(super) fn first(&self) -> Option<Key> {
        self.fronts.first().copied()
    }

    pub(super) fn insert(&mut self, entry: &Entry) {
        let key = entry.key();
        self.len += 1;
        let Some(lane) = &entry.lane else {
            self.fronts.insert(key);
            return;
        };
        let state = self.lanes.entry(lane.name.clone()).or_default();
        let group = state.groups.entry(lane.limit).or_default();
        group.entries.insert(key);
        group.show(lane.limit, state.running, &mut self.fronts);
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        let key = entry.key();
        self.len -= 1;
        let Some(lane) = &entry.lane else {
            self.fronts.remove(&key);
            return;
        };
        let Some(state) = self.lanes.get_mut(&lane.name) else {
            return;
        };
        if let Some(group) = state.groups.get_mut(&lane.limit) {
            group.entries.remove(&key);
            group.show(lane.limit, state.running, &mut self.fronts);
            if group.entries.is_empty() {
                state.groups.remove(&lane.limit);
            }
        }
        self.forget_if_idle(&lane.name);
    }

    pub(super) fn running(&self, lane: &str) -> u32 {
        self.lanes.get(lane).map_or(0, |state| state.running)
    }

    pub(super) fn has_room(&self, lane: &Lane) -> bool {
        has_room(lane.limit, self.running(&lane.name))
    }

    pub(super) fn set_running(&mut self, lane: &Arc<str>, running: u32) {
        let state = self.lanes.entry(lane.clone()).or_default();
        let before = std::mem::replace(&mut state.running, running);
        let (low, high) = (before.min(running), before.max(running));
        // Only groups with a limit between the two counts open or close.
        if let Some(from) = limit_above(low) {
            let to = limit_above(high.saturating_sub(1)).unwrap_or(NonZeroU16::MAX);
            for (limit, group) in state.groups.range_mut(from..=to.max(from)) {
                group.show(*limit, running, &mut self.fronts);
            }
        }
        self.forget_if_idle(lane);
    }

    /// The lanes in which something waits because they are full.
    pub(super) fn full(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_full = |state: &LaneState| state.groups.keys().any(|limit| !has_room(*limit, state.running));
        let lanes = self.lanes.iter();
        lanes.filter_map(move |(name, state)| is_full(state).then_some(name))
    }

    #[cfg(test)]
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn forget_if_idle(&mut self, lane: &str) {
        let is_idle = |state: &LaneState| state.running == 0 && state.groups.is_empty();
        if self.lanes.get(lane).is_some_and(is_idle) {
            self.lanes.remove(lane);
        }
    }
}

impl Group {
    /// Restores invariant 1 for this group.
    fn show(&mut self, limit: NonZeroU16, running: u32, fronts: &mut BTreeSet<Key>) {
        let first = self.entries.first().copied();
        let to_show = first.filter(|_| has_room(limit, running));
        if self.shown == to_show {
            return;
        }
        if let Some(shown) = self.shown.take() {
            fronts.remove(&shown);
        }
        fronts.extend(to_show);
        self.shown = to_show;
    }
}

fn has_room(limit: NonZeroU16, running: u32) -> bool {
    running < u32::from(limit.get())
}

/// The lowest limit that has room while this many run.
fn limit_above(running: u32) -> Option<NonZeroU16> {
    let limit = u16::try_from(running.saturating_add(1)).ok()?;
    NonZeroU16::new(limit)
}
