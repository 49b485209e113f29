//! What a log has acknowledged and may still lose. Its only writer keeps it, and writes it again if the log has taken it
//! back: see [`CommitError::RolledBack`](crate::CommitError::RolledBack).

use crate::{
    commit::{Durability, NewEvent},
    names::Sequence,
};

/// The events of relaxed commits to one stream, since the last durable one.
#[derive(Debug, Default)]
pub struct Unsettled {
    events: Vec<(Sequence, NewEvent)>,
    bytes: usize,
}

impl Unsettled {
    /// Takes in the events of a commit that was acknowledged, the last of which is at this place.
    pub fn acknowledged(&mut self, durability: Durability, last: Sequence, events: Vec<NewEvent>) {
        if durability == Durability::Durable {
            // Whatever came before is on the disk with it.
            *self = Self::default();
            return;
        }
        let first = (last.get() + 1).saturating_sub(events.len() as u64);
        let bytes = |event: &NewEvent| event.body.len() + size_of::<NewEvent>();
        self.bytes += events.iter().map(bytes).sum::<usize>();
        let places = (first..).map(Sequence::from_u64);
        self.events.extend(places.zip(events));
    }

    /// How much memory it takes. Whoever keeps too much makes a durable commit.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was taken back of it by a log whose last event is this one.
    pub fn after(&self, last: Sequence) -> Vec<NewEvent> {
        let lost = self.events.iter().filter(|(place, _)| *place > last);
        lost.map(|(_, event)| event.clone()).collect()
    }
}
