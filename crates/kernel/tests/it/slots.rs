//! States with generations, alone and by key.

use std::{sync::Arc, task::Poll, thread, time::Duration};

use kernel::{CancellationToken, Deadline, Slot, Slots, WaitError};

use crate::support::{Counter, cause, manual_clock, poll};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_transition_names_what_it_saw() {
    let slot = Slot::new("starting");
    let first = slot.read().generation;
    let second = slot.transition(first, "ready").unwrap();
    assert!(second > first);

    let stale = slot.transition(first, "lost").unwrap_err();
    assert_eq!(
        (stale.current.generation, *stale.current.state, stale.refused),
        (second, "ready", "lost")
    );
    assert_eq!(stale.to_string(), "the state has moved on to generation 2");
    assert_eq!(*slot.read().state, "ready");
    assert_eq!(
        format!("{slot:?}"),
        r#"Slot { generation: Generation(2), state: "ready" }"#
    );
}

#[test]
fn a_waiter_is_woken_by_each_transition_and_looks_for_itself() {
    let slot = Slot::new(0);
    let (counter, waker) = Counter::new();
    let scope = CancellationToken::new().scope();
    let mut wait = slot.wait_until(|state| *state >= 2, Deadline::never(), &scope);
    assert!(poll(&mut wait, &waker).is_pending());
    assert_eq!(
        format!("{wait:?}"),
        "WaitUntil { slot: Slot { generation: Generation(1), state: 0 }, .. }"
    );
    for next in 1..=3 {
        slot.transition(slot.read().generation, next).unwrap();
    }
    assert_eq!(counter.count(), 1, "woken once, because it has not looked since");
    let Poll::Ready(Ok(seen)) = poll(&mut wait, &waker) else {
        panic!("the state is as wanted")
    };
    assert_eq!((seen.generation.get(), *seen.state), (4, 3));
    drop(wait);
    assert_eq!(slot.waiting(), 0);
}

#[test]
fn a_state_that_is_as_wanted_ends_a_wait_even_if_the_time_is_over() {
    let (_, clock) = manual_clock();
    let token = CancellationToken::new();
    token.cancel(cause("over"));
    let slot = Slot::new("ready");
    let over = Deadline::after(&clock, Duration::ZERO);
    let seen = slot
        .wait_until_blocking(|state| *state == "ready", over, &token.scope())
        .unwrap();
    assert_eq!(*seen.state, "ready");
}

#[test]
fn a_deadline_ends_a_wait_and_tells_the_last_state() {
    let (clock, shared) = manual_clock();
    let slot = Slot::new("starting");
    let scope = CancellationToken::new().scope();
    let (counter, waker) = Counter::new();
    let mut wait = slot.wait_until(
        |state| *state == "ready",
        Deadline::after(&shared, SECOND),
        &scope,
    );
    assert!(poll(&mut wait, &waker).is_pending());
    clock.advance(SECOND);
    assert_eq!(counter.count(), 1);
    let Poll::Ready(Err(error)) = poll(&mut wait, &waker) else {
        panic!("the deadline has passed")
    };
    assert_eq!(error.to_string(), "the state was not reached before the deadline");
    assert!(matches!(error, WaitError::DeadlineExceeded { last } if *last.state == "starting"));
}

#[test]
fn a_cancel_ends_a_wait_and_tells_the_cause() {
    let slot = Slot::new("starting");
    let token = CancellationToken::new();
    let (waiting, scope) = (slot.clone(), token.scope());
    let thread = thread::spawn(move || waiting.wait_until_blocking(|_| false, Deadline::never(), &scope));
    token.cancel(cause("user"));
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the wait was cancelled by user: because");
    assert!(matches!(error, WaitError::Cancelled { last, .. } if *last.state == "starting"));
    assert_eq!((slot.waiting(), token.tracked()), (0, (0, 0)));
}

#[test]
fn an_entry_lives_as_long_as_somebody_holds_it() {
    let slots = Slots::new();
    assert!(slots.find(&"key").is_none());
    let first = slots.hold("key", 1);
    let second = slots.hold("key", 2);
    let third = slots.find(&"key").unwrap().clone();
    assert_eq!(
        (first.key(), *second.read().state, *third.read().state),
        (&"key", 1, 1)
    );
    drop((first, second));
    assert_eq!(slots.list().len(), 1);
    assert_eq!(
        format!("{third:?}"),
        r#"HeldSlot { key: "key", slot: Slot { generation: Generation(1), state: 1 } }"#
    );
    drop(third);
    assert!(slots.list().is_empty());
}

#[test]
fn a_wait_holds_its_entry() {
    let slots = Slots::default();
    let held = slots.hold("key", 0);
    let scope = CancellationToken::new().scope();
    let (_, waker) = Counter::new();
    let mut wait = held.wait_until(|state| *state == 1, Deadline::never(), &scope);
    assert!(poll(&mut wait, &waker).is_pending());
    drop(held);
    let found = slots.find(&"key").expect("somebody waits on it");
    found.transition(found.read().generation, 1).unwrap();
    drop(found);
    assert!(poll(&mut wait, &waker).is_ready());
    drop(wait);
    assert!(slots.list().is_empty());
}

#[test]
fn a_generation_of_an_entry_that_went_away_is_never_current_again() {
    let slots = Slots::new();
    let old = slots.hold("key", 0).read().generation;
    for _ in 0..100 {
        let held = slots.hold("key", 0);
        assert!(held.read().generation > old);
        assert!(held.transition(old, 1).is_err());
    }
}

#[test]
fn entries_are_listed_by_key_with_their_states() {
    let slots = Slots::new();
    let _held = [("b", 2), ("a", 1), ("c", 3)].map(|(key, state)| slots.hold(key, state));
    let listed: Vec<_> = slots
        .list()
        .into_iter()
        .map(|(key, seen)| (key, *seen.state))
        .collect();
    assert_eq!(listed, [("a", 1), ("b", 2), ("c", 3)]);
    assert!(format!("{slots:?}").starts_with(r#"{"a": Seen {"#));
}

#[test]
fn a_blocking_wait_on_a_key_sees_the_transition_of_another_thread() {
    let slots = Slots::new();
    let held = slots.hold("key", 0);
    let other = slots.find(&"key").unwrap();
    let writing = thread::spawn(move || other.transition(other.read().generation, 1).unwrap());
    let scope = CancellationToken::new().scope();
    let seen = held
        .wait_until_blocking(|state| *state == 1, Deadline::never(), &scope)
        .unwrap();
    assert_eq!(Some(seen.generation), writing.join().ok());
}

/// States may be of types whose destructors use the registry; no lock is held then.
#[test]
fn the_destructor_of_a_state_may_use_the_slots() {
    #[derive(Debug)]
    struct Meddler(Slots<&'static str, Option<Arc<Meddler>>>);
    impl Drop for Meddler {
        fn drop(&mut self) {
            assert!(self.0.list().len() <= 1);
        }
    }
    let slots = Slots::new();
    let held = slots.hold("key", None);
    let meddler = || Some(Arc::new(Meddler(slots.clone())));
    held.transition(held.read().generation, meddler()).unwrap();
    held.transition(held.read().generation, meddler()).unwrap();
    drop(slots.hold("key", meddler()));
    drop(held);
    assert!(slots.list().is_empty());
}

#[test]
fn a_change_that_nobody_waits_for_wakes_nobody_and_is_seen() {
    let (woken, waker) = Counter::new();
    let slot = Slot::new((0, "busy"));
    let scope = CancellationToken::new().scope();
    let mut wait = slot.wait_until(|(_, word)| *word == "done", Deadline::never(), &scope);
    assert!(poll(&mut wait, &waker).is_pending());

    let seen = slot.read().generation;
    let counted = slot.transition_unnoticed(seen, (1, "busy")).unwrap();
    assert_eq!((woken.count(), slot.read().state.0), (0, 1));
    // It is a write like any other: who has not seen it is refused.
    let late = slot.transition_unnoticed(seen, (2, "busy")).unwrap_err();
    assert_eq!((late.current.generation, late.refused), (counted, (2, "busy")));

    slot.transition(counted, (1, "done")).unwrap();
    assert_eq!(woken.count(), 1);
    assert!(poll(&mut wait, &waker).is_ready());
}
