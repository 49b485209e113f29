//! Questions that run without an index have priority over building one: both want all cores, and somebody is waiting
//! for the question.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{Clock, Deadline, Scope, Slot};

/// The longest time that a build waits at a time. Afterwards it works as long as it has waited, so that building an
/// index takes at most twice the time, no matter how many questions there are.
const MOST_WAIT: Duration = Duration::from_secs(1);

/// How many questions are searching all files of a tree. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    walking: Slot<usize>,
    clock: Arc<dyn Clock>,
}

/// A question that searches all files of a tree, until it is dropped.
#[derive(Debug)]
pub(crate) struct Walking(Slot<usize>);

#[derive(Debug, Default)]
pub(super) struct Turn {
    works_until: Option<Instant>,
}

impl Way {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self {
            walking: Slot::new(0),
            clock: Arc::clone(clock),
        }
    }

    pub(crate) fn walk(&self) -> Walking {
        change(&self.walking, |walking| walking + 1);
        Walking(self.walking.clone())
    }

    /// Waits until no question walks, the time is over, or the scope is cancelled. It blocks.
    pub(super) fn give(&self, turn: &mut Turn, scope: &Scope) {
        if *self.walking.read().state == 0 {
            return;
        }
        let began = self.clock.now();
        if turn.works_until.is_some_and(|until| began < until) {
            return;
        }
        let patience = Deadline::after(&self.clock, MOST_WAIT);
        // It continues in any case.
        drop(
            self.walking
                .wait_until_blocking(|walking| *walking == 0, patience, scope),
        );
        let now = self.clock.now();
        turn.works_until = Some(now + now.saturating_duration_since(began));
    }
}

impl Drop for Walking {
    fn drop(&mut self) {
        change(&self.0, |walking| walking.saturating_sub(1));
    }
}

/// Changes the count. If another thread was faster, tries again with the newest count.
fn change(walking: &Slot<usize>, next: impl Fn(usize) -> usize) {
    loop {
        let seen = walking.read();
        if walking.transition(seen.generation, next(*seen.state)).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use kernel::{CancellationToken, Cause, ManualClock};

    use super::*;

    /// More than any machine needs for a step.
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn an_index_waits_while_somebody_walks_and_no_longer_than_it_works() {
        let manual = ManualClock::new();
        let clock: Arc<dyn Clock> = manual.clone();
        let (way, token) = (Way::new(&clock), CancellationToken::new());
        let (step, steps) = mpsc::channel();
        let (go, turns) = mpsc::channel::<()>();
        let worker = {
            let (way, scope) = (way.clone(), token.scope());
            thread::spawn(move || {
                let mut turn = Turn::default();
                while turns.recv().is_ok() {
                    way.give(&mut turn, &scope);
                    step.send(()).unwrap();
                }
            })
        };
        let is_waiting = || {
            let began = Instant::now();
            while way.walking.waiting() == 0 {
                assert!(began.elapsed() < LONG, "it does not wait");
                thread::yield_now();
            }
        };
        let goes_on = || steps.recv_timeout(LONG).unwrap();
        go.send(()).unwrap();
        goes_on();

        // It waits for both, and continues when the last one is done.
        let (one, other) = (way.walk(), way.walk());
        go.send(()).unwrap();
        is_waiting();
        drop(one);
        is_waiting();
        manual.advance(MOST_WAIT / 2);
        drop(other);
        goes_on();

        // It has waited half a second, so it works for half a second.
        let walking = way.walk();
        go.send(()).unwrap();
        goes_on();
        manual.advance(MOST_WAIT / 2);
        go.send(()).unwrap();
        is_waiting();
        // It continues, no matter how long somebody walks.
        manual.advance(MOST_WAIT);
        goes_on();
        manual.advance(MOST_WAIT);
        go.send(()).unwrap();
        is_waiting();
        assert!(token.cancel(Cause::new("a test", "it is enough")));
        goes_on();
        drop((go, walking));
        worker.join().unwrap();
        assert_eq!(*way.walking.read().state, 0);
    }
}
