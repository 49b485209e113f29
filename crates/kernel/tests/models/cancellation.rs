//! One token, its runs and their waiters.

use std::{
    future::Future,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use kernel::{CancellationToken, Cause, Deadline};

use crate::{
    explore,
    subjects::cancellation::{BareClear, Cancellation, LockedClear},
    together,
};

fn cause() -> Cause {
    Cause::new("model", "to see what happens")
}

/// A worker waits; somebody cancels and then resets for the next run. Can the reset undo the cancel for the
/// worker that was to be stopped?
fn a_reset_undoes_no_cancel_for_its_holder<C: Cancellation>() {
    explore(|| {
        let token = C::new();
        let run = token.begin();
        together(
            move || {
                C::wait(&run);
                assert!(C::is_cancelled(&run), "woken by a cancel, and the cancel is gone");
            },
            move || {
                token.cancel();
                token.reset();
            },
        );
    });
}

#[test]
fn a_reset_undoes_no_cancel_for_its_holder_ours() {
    a_reset_undoes_no_cancel_for_its_holder::<CancellationToken>();
}

#[test]
#[should_panic]
fn a_reset_undoes_no_cancel_for_its_holder_bare_clear() {
    a_reset_undoes_no_cancel_for_its_holder::<BareClear>();
}

#[test]
#[should_panic]
fn a_reset_undoes_no_cancel_for_its_holder_locked_clear() {
    a_reset_undoes_no_cancel_for_its_holder::<LockedClear>();
}

/// The first run was cancelled, and two parties clean up after it. One of them starts the second run, which is
/// cancelled in its turn. Can the late reset of the other one lose that cancel?
fn a_late_reset_loses_no_cancel<C: Cancellation>() {
    explore(|| {
        let token = C::new();
        token.cancel();
        let late = token.clone();
        together(
            move || late.reset(),
            move || {
                token.reset();
                let second = token.begin();
                token.cancel();
                assert!(
                    C::is_cancelled(&second),
                    "the second run was told to stop and does not know it"
                );
            },
        );
    });
}

#[test]
fn a_late_reset_loses_no_cancel_ours() {
    a_late_reset_loses_no_cancel::<CancellationToken>();
}

#[test]
#[should_panic(expected = "the second run was told to stop")]
fn a_late_reset_loses_no_cancel_bare_clear() {
    a_late_reset_loses_no_cancel::<BareClear>();
}

#[test]
#[should_panic(expected = "the second run was told to stop")]
fn a_late_reset_loses_no_cancel_locked_clear() {
    a_late_reset_loses_no_cancel::<LockedClear>();
}

/// A reset and a cancel at once: whoever did the cancelling finds the token cancelled or its run over.
#[test]
fn a_cancel_that_counts_is_seen_by_its_run() {
    explore(|| {
        let token = CancellationToken::new();
        token.cancel(cause());
        let resetting = token.clone();
        together(
            move || resetting.reset().unwrap(),
            move || {
                if token.cancel(cause()) {
                    // It was first, so it came after the reset, and nothing resets again.
                    assert!(token.is_cancelled());
                    assert!(token.scope().is_cancelled());
                }
            },
        );
    });
}

#[test]
fn a_reset_of_a_known_run_leaves_a_later_cancel_alone() {
    explore(|| {
        let token = CancellationToken::new();
        let first = token.scope();
        token.cancel(cause());
        let other = token.clone();
        together(
            move || {
                // Refused if the other party was faster; either way it touches only the first run's cancel.
                let _refused = other.reset_scope(&first);
            },
            move || {
                token.reset().unwrap();
                token.cancel(cause());
                assert!(
                    token.is_cancelled(),
                    "a reset meant for the first run undid the second cancel"
                );
            },
        );
    });
}

#[test]
fn a_cancel_of_a_known_run_stops_no_later_one() {
    explore(|| {
        let token = CancellationToken::new();
        let first = token.scope();
        let other = token.clone();
        together(
            move || {
                other.cancel_scope(&first, cause());
                assert!(first.is_cancelled());
            },
            move || {
                token.cancel(cause());
                token.reset().unwrap();
                assert!(
                    !token.scope().is_cancelled(),
                    "the second run was stopped by a cancel of the first"
                );
            },
        );
    });
}

#[test]
fn no_waiter_sleeps_for_ever() {
    explore(|| {
        let token = CancellationToken::new();
        let scope = token.scope();
        together(
            move || {
                let cause = scope.wait_blocking(Deadline::never()).unwrap();
                assert_eq!(cause.who, "model");
            },
            move || {
                token.cancel(cause());
            },
        );
    });
}

#[test]
fn whoever_sees_the_cancel_sees_its_cause() {
    explore(|| {
        let token = CancellationToken::new();
        let scope = token.scope();
        together(
            move || {
                if scope.is_cancelled() {
                    assert!(scope.cause().is_some());
                }
            },
            move || {
                token.cancel(cause());
                token.reset().unwrap();
            },
        );
    });
}

#[test]
fn a_dropped_wait_leaves_nothing_behind() {
    explore(|| {
        let token = CancellationToken::new();
        let cancelling = token.clone();
        together(
            move || {
                let mut wait = Box::pin(token.wait());
                let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                drop(wait);
                assert!(matches!(polled, Poll::Pending | Poll::Ready(_)));
                assert_eq!(token.tracked(), (0, 0), "a wait that is gone is still tracked");
            },
            move || {
                cancelling.cancel(cause());
            },
        );
    });
}

/// Both of two callers cancel, with different causes: one is first, and its cause is everybody's.
#[test]
fn two_cancels_have_one_cause() {
    explore(|| {
        let token = CancellationToken::new();
        let scope = token.scope();
        let other = token.clone();
        let thread = loom::thread::spawn(move || other.cancel(Cause::new("other", "")));
        let was_first = token.cancel(Cause::new("main", ""));
        let other_was_first = thread.join().unwrap();
        assert_ne!(was_first, other_was_first);
        let cause: Arc<Cause> = scope.cause().expect("it is cancelled");
        assert_eq!(cause.who, if was_first { "main" } else { "other" });
    });
}
