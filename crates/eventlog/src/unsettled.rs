//! Events that a log has acknowledged and may still lose. Their only writer keeps them, and writes them again if
//! the log has rolled them back; see [`CommitError::RolledBack`](crate::CommitError::RolledBack).

use crate::{
    commit::{Durability, NewEvent},
    names::Sequence,
};

/// The events of relaxed commits to one stream since the last durable one.
#[derive(Debug, Default)]
pub struct UnsettledEvents {
    events: Vec<(Sequence, NewEvent)>,
    bytes: usize,
}

impl UnsettledEvents {
    /// Records the events of an acknowledged commit, the last of which has this sequence number.
    pub fn acknowledged(&mut self, durability: Durability, last: Sequence, events: Vec<NewEvent>) {
        if durability == Durability::Durable {
            // Everything before is on disk together with it.
            *self = Self::default();
            return;
        }
        let first = (last.get() + 1).saturating_sub(events.len() as u64);
        let bytes = |event: &NewEvent| event.body.len() + size_of::<NewEvent>();
        self.bytes += events.iter().map(bytes).sum::<usize>();
        let places = (first..).map(Sequence::from_u64);
        self.events.extend(places.zip(events));
    }

    /// How much memory the events take. A writer that keeps too much makes a durable commit.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The events that a log has rolled back if its last event is this one.
    pub fn after(&self, last: Sequence) -> Vec<NewEvent> {
        let lost = self.events.iter().filter(|(place, _)| *place > last);
        lost.map(|(_, event)| event.clone()).collect()
    }
}
