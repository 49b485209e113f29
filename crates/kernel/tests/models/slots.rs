//! States with generations.

use kernel::{CancellationToken, Deadline, Slot, Slots};

use crate::{explore, together};

#[test]
fn no_stale_transition_wins() {
    explore(|| {
        let slot = Slot::new(0);
        let seen = slot.read().generation;
        let other = slot.clone();
        let thread = loom::thread::spawn(move || other.transition(seen, 1).is_ok());
        let won = slot.transition(seen, 2).is_ok();
        let other_won = thread.join().unwrap();
        assert!(
            won != other_won,
            "of two writers that saw the same state, not exactly one won"
        );
        assert_eq!(*slot.read().state, if won { 2 } else { 1 });
    });
}

#[test]
fn increments_by_generation_are_exact() {
    explore(|| {
        let slot = Slot::new(0);
        let (one, other) = (slot.clone(), slot.clone());
        let increment = |slot: &Slot<i32>| {
            let mut seen = slot.read();
            while let Err(stale) = slot.transition(seen.generation, *seen.state + 1) {
                assert_eq!(stale.refused, *seen.state + 1, "what was refused is given back");
                seen = stale.current;
            }
        };
        together(move || increment(&one), move || increment(&other));
        assert_eq!(*slot.read().state, 2);
    });
}

#[test]
fn no_waiter_misses_the_last_state() {
    explore(|| {
        let slot = Slot::new(0);
        let waiting = slot.clone();
        let token = CancellationToken::new();
        together(
            move || {
                let seen =
                    waiting.wait_until_blocking(|state| *state == 2, Deadline::never(), &token.scope());
                assert_eq!(*seen.unwrap().state, 2);
            },
            move || {
                let one = slot.transition(slot.read().generation, 1).unwrap();
                slot.transition(one, 2).unwrap();
            },
        );
    });
}

#[test]
fn a_cancel_ends_a_wait() {
    explore(|| {
        let slot = Slot::new(0);
        let token = CancellationToken::new();
        let scope = token.scope();
        let waiting = slot.clone();
        together(
            move || {
                waiting
                    .wait_until_blocking(|_| false, Deadline::never(), &scope)
                    .unwrap_err();
            },
            move || {
                token.cancel(kernel::Cause::new("model", ""));
            },
        );
        assert_eq!(slot.waiting(), 0);
    });
}

#[test]
fn an_entry_stays_while_it_is_held_and_goes_with_the_last_holder() {
    explore(|| {
        let slots = Slots::new();
        let (one, other) = (slots.clone(), slots.clone());
        let hold = |slots: &Slots<&'static str, u32>| {
            let held = slots.hold("key", 0);
            assert_eq!(slots.list().len(), 1, "a held entry is not there");
            drop(held);
        };
        together(move || hold(&one), move || hold(&other));
        assert!(
            slots.list().is_empty(),
            "an entry that nobody holds is still there"
        );
    });
}

#[test]
fn two_holders_of_a_key_share_its_state() {
    explore(|| {
        let slots = Slots::new();
        let first = slots.hold("key", 0);
        let other = slots.clone();
        together(
            move || {
                let held = other.hold("key", 7);
                let seen = held.read();
                assert!(held.transition(seen.generation, *seen.state + 1).is_ok());
            },
            move || drop(slots.clone().hold("key", 9)),
        );
        assert_eq!(*first.read().state, 1);
    });
}
