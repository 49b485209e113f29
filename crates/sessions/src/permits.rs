//! The permits for turns of one daemon, and the sessions that wait for one.
//!
//! **Invariant:** a permit is free only while no session waits. A returned permit goes directly to the session that has
//! waited longest, so no newcomer can take it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kernel::{Deadline, Scope, Slot};
use protocol::{SessionCounts, SessionId, TurnId};

use crate::inner::SessionsInner;

/// A turn runs only with a permit.
#[derive(Debug)]
pub(crate) struct TurnPermits {
    /// Guards which turns have a permit and which sessions wait.
    inner: Mutex<Inner>,
    /// How many turns run here, for [`idle`](Self::idle).
    running: Slot<usize>,
}

#[derive(Debug)]
struct Inner {
    free: usize,
    /// The turns that run here, or are about to, with the number of permits reserved for each. Two tasks can try to run the
    /// same turn; the one that doesn't get it returns its permit while the other one runs.
    turns: HashMap<TurnId, usize>,
    /// Sessions with prompts that wait for a permit, in order. Each is listed once.
    waiting: VecDeque<SessionId>,
}

/// Which sessions may get a returned permit.
#[derive(Clone, Copy, Debug)]
enum Heirs {
    WhoeverWaits,
    /// The daemon is shutting down, and nothing starts anymore.
    Nobody,
}

/// A permit for one turn. When it is dropped, the session that has waited longest gets it.
#[derive(Debug)]
pub(crate) struct TurnPermit {
    shared: Weak<SessionsInner>,
    turn: Option<TurnId>,
}

impl TurnPermits {
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

    /// Takes a permit, if one is free. Otherwise the session waits for the next one.
    pub(crate) fn take(&self, shared: &Arc<SessionsInner>, session: SessionId) -> Option<TurnPermit> {
        self.lock().take(session).then(|| TurnPermit {
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

    /// Waits until nothing runs here. Returns false if the deadline passes first.
    pub(crate) async fn idle(&self, deadline: Deadline, scope: &Scope) -> bool {
        let idle = self.running.wait_until(|running| *running == 0, deadline, scope);
        idle.await.is_ok()
    }

    /// Publishes how many turns are running.
    fn tell(&self) {
        loop {
            let seen = self.running.read();
            let running = self.lock().turns.len();
            // Another thread may have published a count from before this change.
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
    /// Takes a permit if one is free. Otherwise the session waits for the next one, and this returns false.
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

    /// Returns a permit, and picks the session that gets it.
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

    /// Cancels one reservation for a turn.
    fn give_up(&mut self, turn: TurnId) {
        if let Some(permits) = self.turns.get_mut(&turn) {
            *permits -= 1;
            if *permits == 0 {
                self.turns.remove(&turn);
            }
        }
    }
}

impl TurnPermit {
    /// Records which turn is about to run with it, before that is committed, so that anyone who sees the turn in the
    /// log finds it here.
    pub(crate) fn reserve(&mut self, turn: TurnId) {
        if let Some(shared) = self.shared.upgrade() {
            let mut inner = shared.permits.lock();
            if let Some(before) = self.turn.replace(turn) {
                inner.give_up(before);
            }
            *inner.turns.entry(turn).or_default() += 1;
            drop(inner);
            shared.permits.tell();
        }
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let next = {
            let mut inner = shared.permits.lock();
            if let Some(turn) = self.turn {
                inner.give_up(turn);
            }
            let heirs = match shared.open.is_cancelled() {
                true => Heirs::Nobody,
                false => Heirs::WhoeverWaits,
            };
            inner.give_back(heirs)
        };
        shared.permits.tell();
        if let Some(session) = next {
            let permit = TurnPermit {
                shared: self.shared.clone(),
                turn: None,
            };
            crate::runner::go_on_with(&shared, session, permit);
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
        assert!(!inner.take(newcomer), "the permit is the second session's");
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
