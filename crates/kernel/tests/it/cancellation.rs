//! One token: runs, causes, waiters, deadlines.

use std::{
    sync::{Arc, Barrier},
    task::{Poll, Wake, Waker},
    thread,
    time::Duration,
};

use kernel::{CancellationToken, Cause, Deadline, DeadlineExceeded, ResetRefused, SystemClock};

use crate::support::{Counter, cause, manual_clock, poll};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_cancel_reaches_the_token_and_its_scopes() {
    let token = CancellationToken::default();
    let scope = token.scope();
    assert!(!token.is_cancelled() && !scope.is_cancelled());
    assert_eq!((token.cause(), scope.cause()), (None, None));

    assert!(token.cancel(cause("first")));
    assert!(
        !token.cancel(cause("second")),
        "only the first cancel of a run counts"
    );
    assert!(token.is_cancelled() && scope.is_cancelled());
    assert_eq!(token.cause().as_deref(), Some(&cause("first")));
    assert_eq!(scope.cause().as_deref(), Some(&cause("first")));
}

#[test]
fn cancelling_before_the_work_starts_counts() {
    let token = CancellationToken::new();
    token.cancel(cause("early"));
    let scope = token.scope();
    assert!(scope.is_cancelled());
    assert_eq!(scope.cause().as_deref(), Some(&cause("early")));
}

#[test]
fn each_run_keeps_its_own_cancel_and_cause() {
    let token = CancellationToken::new();
    let first = token.scope();
    token.cancel(cause("first"));
    token.reset().unwrap();
    let second = token.scope();
    assert!(first.is_cancelled() && !second.is_cancelled() && !token.is_cancelled());

    token.cancel(cause("second"));
    token.reset().unwrap();
    assert_eq!(first.cause().as_deref(), Some(&cause("first")));
    assert_eq!(second.cause().as_deref(), Some(&cause("second")));
    assert_eq!(token.cause(), None);
}

#[test]
fn a_live_token_can_be_reset_without_effect() {
    let token = CancellationToken::new();
    let scope = token.scope();
    token.reset().unwrap();
    assert!(!scope.is_cancelled());
    token.cancel(cause("later"));
    assert!(scope.is_cancelled());
}

#[test]
fn cancel_scope_stops_that_run_and_no_later_one() {
    let token = CancellationToken::new();
    let first = token.scope();
    assert!(token.cancel_scope(&first, cause("one")));
    assert!(!token.cancel_scope(&first, cause("again")));
    token.reset().unwrap();
    assert!(!token.cancel_scope(&first, cause("late")));
    assert!(!token.is_cancelled());
}

#[test]
fn reset_scope_undoes_that_cancel_and_no_later_one() {
    let token = CancellationToken::new();
    let first = token.scope();
    assert_eq!(
        token.reset_scope(&first),
        Err(ResetRefused::Moved),
        "nothing to undo yet"
    );
    token.cancel(cause("first"));
    assert_eq!(token.reset_scope(&first), Ok(()));
    token.cancel(cause("second"));
    assert_eq!(token.reset_scope(&first), Err(ResetRefused::Moved));
    assert!(token.is_cancelled());
}

#[test]
#[should_panic(expected = "a scope can only be used with the token that it was taken from")]
fn a_scope_of_another_token_is_refused() {
    CancellationToken::new().cancel_scope(&CancellationToken::new().scope(), cause("mistake"));
}

#[test]
fn any_number_of_waiters_async_and_blocking_together() {
    let token = CancellationToken::new();
    let (counter, waker) = Counter::new();
    let mut waits: Vec<_> = (0..1_000).map(|_| token.wait()).collect();
    for wait in &mut waits {
        assert_eq!(poll(wait, &waker), Poll::Pending);
    }
    let ready = Arc::new(Barrier::new(17));
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let (scope, ready) = (token.scope(), Arc::clone(&ready));
            thread::spawn(move || {
                ready.wait();
                scope.wait_blocking(Deadline::never())
            })
        })
        .collect();
    ready.wait();
    token.cancel(cause("stop"));
    assert_eq!(counter.count(), 1_000);
    for wait in &mut waits {
        assert_eq!(poll(wait, &waker), Poll::Ready(Arc::new(cause("stop"))));
    }
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(Arc::new(cause("stop"))));
    }
    assert_eq!(token.tracked(), (0, 0));
}

#[test]
fn a_dropped_wait_leaves_nothing_behind() {
    let token = CancellationToken::new();
    let (counter, waker) = Counter::new();
    for _ in 0..1_000 {
        let mut wait = token.wait();
        assert_eq!(poll(&mut wait, &waker), Poll::Pending);
    }
    assert_eq!(token.tracked(), (0, 0));
    token.cancel(cause("nobody"));
    assert_eq!(counter.count(), 0);
}

#[test]
fn a_wait_that_moves_to_another_task_wakes_that_one() {
    let token = CancellationToken::new();
    let ((old, old_waker), (new, new_waker)) = (Counter::new(), Counter::new());
    let mut wait = token.wait();
    assert_eq!(poll(&mut wait, &old_waker), Poll::Pending);
    assert_eq!(poll(&mut wait, &new_waker), Poll::Pending);
    token.cancel(cause("stop"));
    assert_eq!((old.count(), new.count()), (0, 1));
}

/// Wakers are foreign code. One that uses the token, when it is woken and when it is dropped, must not hang.
#[test]
fn a_waker_may_use_the_token() {
    struct Meddler(CancellationToken);
    impl Wake for Meddler {
        fn wake(self: Arc<Self>) {
            assert!(self.0.is_cancelled());
            self.0.cancel(cause("meddler"));
        }
    }
    impl Drop for Meddler {
        fn drop(&mut self) {
            self.0.scope();
        }
    }
    let token = CancellationToken::new();
    let mut wait = token.wait();
    assert_eq!(
        poll(&mut wait, &Waker::from(Arc::new(Meddler(token.clone())))),
        Poll::Pending
    );
    // Replaced by a second poll: the first waker is dropped.
    assert_eq!(
        poll(&mut wait, &Waker::from(Arc::new(Meddler(token.clone())))),
        Poll::Pending
    );
    token.cancel(cause("stop"));
    let mut dropped = token.wait();
    token.reset().unwrap();
    assert!(poll(&mut dropped, &Waker::from(Arc::new(Meddler(token.clone())))).is_ready());
}

#[test]
fn a_deadline_cancels_its_run_and_says_so() {
    let (clock, shared) = manual_clock();
    let token = CancellationToken::until(&Deadline::after(&shared, SECOND));
    let scope = token.scope();
    clock.advance(SECOND / 2);
    assert!(!scope.is_cancelled());
    clock.advance(SECOND / 2);
    assert_eq!(scope.cause().as_deref(), Some(&Cause::deadline()));
    assert_eq!(
        scope.cause().unwrap().to_string(),
        "deadline: the time for this run is over"
    );
}

#[test]
fn a_deadline_belongs_to_its_run() {
    let (clock, shared) = manual_clock();
    let token = CancellationToken::until(&Deadline::after(&shared, SECOND));
    assert_eq!(clock.pending_alarms(), 1);
    token.cancel(cause("before"));
    assert_eq!(clock.pending_alarms(), 0, "a run that is over needs no alarm");
    token.reset().unwrap();
    clock.advance(2 * SECOND);
    assert!(!token.is_cancelled());
}

#[test]
fn a_deadline_that_has_passed_meanwhile_cancels_at_once() {
    let (clock, shared) = manual_clock();
    let deadline = Deadline::after(&shared, SECOND);
    clock.advance(SECOND);
    let token = CancellationToken::new().child_until(&deadline);
    assert_eq!(token.cause().as_deref(), Some(&Cause::deadline()));
    assert_eq!(clock.pending_alarms(), 0);
}

#[test]
fn a_dropped_token_takes_its_alarm_along() {
    let (clock, shared) = manual_clock();
    drop(CancellationToken::until(&Deadline::after(&shared, SECOND)));
    assert_eq!(clock.pending_alarms(), 0);
}

#[test]
fn a_blocking_wait_ends_at_its_deadline() {
    let token = CancellationToken::new();
    let deadline = Deadline::after(&SystemClock::shared(), Duration::from_millis(20));
    assert_eq!(token.wait_blocking(deadline), Err(DeadlineExceeded));
    assert_eq!(token.tracked(), (0, 0));
}
