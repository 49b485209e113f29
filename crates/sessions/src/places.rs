//! The places for turns of one daemon, and who waits for one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kernel::{Deadline, Scope, SessionId, Slot, TurnId};

use crate::answers::Counts;
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

/// A place. It is given back when it is dropped, and the next session that waits is told.
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
        let mut inner = self.lock();
        if inner.free == 0 {
            if !inner.waiting.contains(&session) {
                inner.waiting.push_back(session);
            }
            return None;
        }
        inner.free -= 1;
        Some(Place {
            shared: Arc::downgrade(shared),
            turn: None,
        })
    }

    /// Whether a turn runs here, or is about to.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.lock().turns.contains_key(&turn)
    }

    pub(crate) fn counts(&self) -> Counts {
        let inner = self.lock();
        Counts {
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
            inner.free += 1;
            inner.waiting.pop_front()
        };
        shared.places.tell();
        if let Some(session) = next {
            crate::runner::go_on(&shared, session);
        }
    }
}
