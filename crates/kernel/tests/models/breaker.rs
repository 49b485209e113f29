//! Counts, permits and probes.

use std::{sync::Arc, time::Duration};

use kernel::{BreakerSettings, CircuitBreaker, CircuitState, Clock, ManualClock};

use crate::{
    explore,
    subjects::breaker::{Breaker, NAME, Unlocked},
    together,
};

const COOLDOWN: Duration = Duration::from_secs(30);

fn breaker(failure_threshold: u32) -> (CircuitBreaker, Arc<ManualClock>) {
    let clock = ManualClock::new();
    let settings = BreakerSettings {
        failure_threshold,
        cooldown: COOLDOWN,
        jitter: 0.0,
        ..Default::default()
    };
    (
        CircuitBreaker::new(settings, Arc::clone(&clock) as Arc<dyn Clock>).unwrap(),
        clock,
    )
}

/// Two failures at once: can a count be lost?
fn no_count_is_lost<B: Breaker>() {
    explore(|| {
        let breaker = B::new(100);
        let (one, other) = (breaker.clone(), breaker.clone());
        together(move || one.record_failure(), move || other.record_failure());
        assert_eq!(breaker.failures(), 2, "a failure was not counted");
    });
}

#[test]
fn no_count_is_lost_ours() {
    no_count_is_lost::<CircuitBreaker>();
}

#[test]
#[should_panic(expected = "a failure was not counted")]
fn no_count_is_lost_unlocked() {
    no_count_is_lost::<Unlocked>();
}

/// A failure and a success at once: can they leave a state that no order of the two explains?
fn no_state_is_torn<B: Breaker>() {
    explore(|| {
        let breaker = B::new(1);
        let (one, other) = (breaker.clone(), breaker.clone());
        together(move || one.record_failure(), move || other.record_success());
        assert!(
            !breaker.is_open() || breaker.failures() > 0,
            "switched off, and no failure is counted"
        );
    });
}

#[test]
fn no_state_is_torn_ours() {
    no_state_is_torn::<CircuitBreaker>();
}

#[test]
#[should_panic(expected = "switched off, and no failure is counted")]
fn no_state_is_torn_unlocked() {
    no_state_is_torn::<Unlocked>();
}

/// A failure and a reset at once, and a failure and a reset of all names: the same question.
fn no_reset_is_torn<B: Breaker>(reset: fn(&B)) {
    explore(move || {
        let breaker = B::new(1);
        let (one, other) = (breaker.clone(), breaker.clone());
        together(move || one.record_failure(), move || reset(&other));
        assert!(
            !breaker.is_open() || breaker.failures() > 0,
            "switched off, and no failure is counted"
        );
    });
}

#[test]
fn no_reset_is_torn_ours() {
    no_reset_is_torn::<CircuitBreaker>(Breaker::reset);
    no_reset_is_torn::<CircuitBreaker>(Breaker::reset_all);
}

#[test]
#[should_panic(expected = "switched off, and no failure is counted")]
fn no_reset_is_torn_unlocked() {
    no_reset_is_torn::<Unlocked>(Breaker::reset);
}

#[test]
#[should_panic(expected = "switched off, and no failure is counted")]
fn no_reset_of_all_is_torn_unlocked() {
    no_reset_is_torn::<Unlocked>(Breaker::reset_all);
}

#[test]
fn two_probes_never_run_together() {
    explore(|| {
        let (breaker, clock) = breaker(1);
        breaker.record_failure(NAME);
        clock.advance(COOLDOWN);
        let other = breaker.clone();
        let thread = loom::thread::spawn(move || other.acquire(NAME));
        let mine = breaker.acquire(NAME);
        let theirs = thread.join().unwrap();
        assert!(
            mine.is_ok() != theirs.is_ok(),
            "of two callers at a half-open circuit not exactly one went through"
        );
    });
}

#[test]
fn a_dropped_probe_makes_room_for_the_next() {
    explore(|| {
        let (breaker, clock) = breaker(1);
        breaker.record_failure(NAME);
        clock.advance(COOLDOWN);
        let probe = breaker.acquire(NAME).unwrap();
        let other = breaker.clone();
        together(
            move || drop(probe),
            move || {
                // Refused or let through, by who was faster; in neither case is the circuit stuck afterwards.
                drop(other.acquire(NAME));
            },
        );
        assert!(breaker.acquire(NAME).is_ok(), "the circuit is stuck half-open");
    });
}

#[test]
fn a_success_from_before_does_not_close() {
    explore(|| {
        let (breaker, clock) = breaker(1);
        let early = breaker.acquire(NAME).unwrap();
        breaker.record_failure(NAME);
        clock.advance(COOLDOWN);
        let other = breaker.clone();
        let thread = loom::thread::spawn(move || early.success());
        let probe = other.acquire(NAME);
        thread.join().unwrap();
        let state = breaker.get(NAME).unwrap().state;
        assert_eq!(
            state,
            CircuitState::HalfOpen { probing: true },
            "only the probe decides"
        );
        drop(probe);
    });
}

/// A reset that finds the circuit came after the failure that made it; one that does not came before.
#[test]
fn a_failure_and_a_reset_have_an_order() {
    explore(|| {
        let (breaker, _clock) = breaker(1);
        let failing = breaker.clone();
        let thread = loom::thread::spawn(move || failing.record_failure(NAME));
        let reset_came_last = breaker.reset(NAME);
        thread.join().unwrap();
        assert_eq!(
            breaker.is_open(NAME),
            !reset_came_last,
            "no order of the two explains the state"
        );
    });
}

#[test]
fn a_failure_from_before_a_reset_does_not_open() {
    explore(|| {
        let (breaker, _clock) = breaker(1);
        let early = breaker.acquire(NAME).unwrap();
        let other = breaker.clone();
        together(
            move || early.failure(),
            move || {
                other.reset(NAME);
            },
        );
        let circuit = breaker.get(NAME).unwrap();
        assert_eq!(circuit.state, CircuitState::Closed);
        assert_eq!(circuit.failures + circuit.late_reports, 1);
    });
}

#[test]
fn a_success_forgets_only_earlier_failures() {
    explore(|| {
        let (breaker, _clock) = breaker(100);
        breaker.record_failure(NAME);
        let (one, other) = (breaker.clone(), breaker.clone());
        together(
            move || one.acquire(NAME).unwrap().success(),
            move || other.acquire(NAME).unwrap().failure(),
        );
        let circuit = breaker.get(NAME).unwrap();
        assert_eq!(circuit.failures, 2);
        assert!(
            circuit.consecutive_failures <= 1,
            "a success left failures that came before it"
        );
    });
}

#[test]
fn reset_all_is_one_step() {
    explore(|| {
        let (breaker, _clock) = breaker(1);
        breaker.record_failure("one");
        breaker.record_failure("two");
        let other = breaker.clone();
        together(
            move || {
                other.reset_all();
            },
            move || {
                // 'one' is reset first inside the step. Whoever sees that sees 'two' reset as well.
                if !breaker.is_open("one") {
                    assert!(!breaker.is_open("two"), "half of the circuits were reset");
                    assert!(breaker.circuit("two").acquire().is_ok());
                }
            },
        );
    });
}

#[test]
fn a_held_circuit_is_not_evicted() {
    explore(|| {
        let settings = BreakerSettings {
            failure_threshold: 1,
            max_names: 1,
            ..Default::default()
        };
        let breaker = CircuitBreaker::new(settings, ManualClock::new()).unwrap();
        let other = breaker.clone();
        let holder = breaker.circuit("held");
        together(
            move || drop(other.circuit("new")),
            move || holder.acquire().unwrap().failure(),
        );
        assert!(
            breaker.is_open("held"),
            "a failure went to a circuit that nobody looks at"
        );
    });
}
