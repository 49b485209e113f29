//! The places for turns of one daemon, and who waits for one.
//!
//! **Invariant:** a place is free only while nobody waits. One that is given back goes to the session that has waited longest,
//! without ever being free, so that no newcomer can take it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kernel::{Deadline, Scope, Slot};
use protocol::{SessionCounts, SessionId, TurnId};

use crate::shared::Shared;

/// The places. A turn runs only with one.
#[derive(Debug)]
pub(crate) struct Places {
    /// Guards who has a place and who waits; held to look and to write.
    inner: Mutex<Inner>,
    /// How many turns run here, for those who wait until none does.
    running: Slot<usize>,
}

#[derive(Debug)]
struct Inner {
    free: usize,
    /// The turns that run here, or are about to, with the number of places that are reserved for each. Two tasks can go for
    /// the same turn; the one that does not get it gives its place back while the other one runs.
    turns: HashMap<TurnId, usize>,
    /// Sessions with prompts that wait for a place, in the order in which they came. None is in it twice.
    waiting: VecDeque<SessionId>,
}

/// Who may get a place that is given back.
#[derive(Clone, Copy, Debug)]
enum Heirs {
    WhoeverWaits,
    /// The daemon ends, and nothing begins any more.
    Nobody,
}

/// A place. When it is dropped, the session that has waited longest gets it.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Weak<Shared>,
    turn: Option<TurnId>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            inner: Mutex::new(Inner {
                free: count,
                turns: HashMap::new(),
                waiting: VecDeque::new(),
            }),
            running: Slot::new(0),
        }
    }

    /// A place, if there is one. Otherwise the session waits for the next.
    pub(crate) fn take(&self, shared: &Arc<Shared>, session: SessionId) -> Option<Place> {
        self.lock().take(session).then(|| Place {
            shared: Arc::downgrade(shared),
            turn: None,
        })
    }

    /// Whether a turn runs here, or is about to.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.lock().turns.contains_key(&turn)
    }

    pub(crate) fn counts(&self) -> SessionCounts {
        let inner = self.lock();
        SessionCounts {
            running: inner.turns.len() as u64,
            waiting: inner.waiting.len() as u64,
        }
    }

    /// Waits until nothing runs here; false if that took too long.
    pub(crate) async fn idle(&self, deadline: Deadline, scope: &Scope) -> bool {
        let idle = self.running.wait_until(|running| *running == 0, deadline, scope);
        idle.await.is_ok()
    }

    /// Tells those who wait for the end how many run.
    fn tell(&self) {
        loop {
            let seen = self.running.read();
            let running = self.lock().turns.len();
            // Whoever was faster has looked too, but maybe before this change.
            if *seen.state == running || self.running.transition(seen.generation, running).is_ok() {
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether there is a place. Otherwise the session waits for the next.
    fn take(&mut self, session: SessionId) -> bool {
        if self.free == 0 {
            if !self.waiting.contains(&session) {
                self.waiting.push_back(session);
            }
            return false;
        }
        self.free -= 1;
        true
    }

    /// Takes a place back, and says who gets it: whoever has waited longest.
    fn give_back(&mut self, heirs: Heirs) -> Option<SessionId> {
        let next = match heirs {
            Heirs::WhoeverWaits => self.waiting.pop_front(),
            Heirs::Nobody => None,
        };
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// One place less is reserved for a turn.
    fn give_up(&mut self, turn: TurnId) {
        if let Some(places) = self.turns.get_mut(&turn) {
            *places -= 1;
            if *places == 0 {
                self.turns.remove(&turn);
            }
        }
    }
}

impl Place {
    /// Says which turn is about to run with it, before that is committed: whoever sees it as ours finds it here.
    pub(crate) fn reserve(&mut self, turn: TurnId) {
        if let Some(shared) = self.shared.upgrade() {
            let mut inner = shared.places.lock();
            if let Some(before) = self.turn.replace(turn) {
                inner.give_up(before);
            }
            *inner.turns.entry(turn).or_default() += 1;
            drop(inner);
            shared.places.tell();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let next = {
            let mut inner = shared.places.lock();
            if let Some(turn) = self.turn {
                inner.give_up(turn);
            }
            let heirs = match shared.open.is_cancelled() {
                true => Heirs::Nobody,
                false => Heirs::WhoeverWaits,
            };
            inner.give_back(heirs)
        };
        shared.places.tell();
        if let Some(session) = next {
            let place = Place {
                shared: self.shared.clone(),
                turn: None,
            };
            crate::runner::go_on_with(&shared, session, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_goes_to_whoever_has_waited_longest() {
        let [first, second, third, newcomer] = [(); 4].map(|()| SessionId::generate());
        let mut inner = Inner {
            free: 1,
            turns: HashMap::new(),
            waiting: VecDeque::new(),
        };
        assert!(inner.take(first));
        assert!(!inner.take(second) && !inner.take(third) && !inner.take(second));
        assert_eq!(inner.give_back(Heirs::WhoeverWaits), Some(second));
        assert!(!inner.take(newcomer), "the place is the second session's");
        assert_eq!(inner.give_back(Heirs::WhoeverWaits), Some(third));
        assert_eq!(inner.give_back(Heirs::WhoeverWaits), Some(newcomer));
        assert_eq!(inner.give_back(Heirs::WhoeverWaits), None);
        assert!(inner.take(first), "nobody waits any more, so it is free");
        assert!(!inner.take(second));
        assert_eq!(
            inner.give_back(Heirs::Nobody),
            None,
            "nobody begins while the daemon ends"
        );
    }
}
