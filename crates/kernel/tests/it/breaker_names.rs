//! Many circuits: names, room for them, resets by generation, settings.

use std::{sync::Arc, time::Duration};

use kernel::{
    BreakerSettings, BreakerSettingsError, CircuitBreaker, CircuitState, Clock, Generation, StaleCircuit,
};

use crate::support::manual_clock;

fn breaker(max_names: usize) -> CircuitBreaker {
    let settings = BreakerSettings {
        max_names,
        failure_threshold: 1,
        ..BreakerSettings::default()
    };
    CircuitBreaker::new(settings, manual_clock().1).unwrap()
}

fn names(breaker: &CircuitBreaker) -> Vec<Arc<str>> {
    breaker
        .snapshot()
        .circuits
        .into_iter()
        .map(|circuit| circuit.name)
        .collect()
}

#[test]
fn circuits_are_independent_and_listed_by_name() {
    let breaker = breaker(10);
    breaker.record_failure("b");
    drop(breaker.circuit("c"));
    drop(breaker.circuit("a"));
    assert_eq!(names(&breaker), ["a", "b", "c"].map(Arc::from));
    assert_eq!(
        ["a", "b", "c"].map(|name| breaker.is_open(name)),
        [false, true, false]
    );
    assert_eq!(breaker.circuit("a").name(), "a");
    assert_eq!(format!("{:?}", breaker.circuit("a")), r#"Circuit("a")"#);
    assert!(format!("{breaker:?}").starts_with("BreakerSnapshot"));
}

#[test]
fn reset_all_closes_every_circuit() {
    let breaker = breaker(10);
    assert_eq!(breaker.reset_all(), 0);
    breaker.record_failure("a");
    breaker.force_open("b");
    breaker.force_closed("c");
    assert_eq!(breaker.reset_all(), 3);
    assert!(
        breaker
            .snapshot()
            .circuits
            .iter()
            .all(|circuit| circuit.state == CircuitState::Closed)
    );
}

#[test]
fn a_reset_that_names_what_it_saw_is_refused_when_that_has_moved() {
    let breaker = breaker(10);
    assert_eq!(
        breaker.reset_if("a", Generation::from_u64(1)),
        Err(StaleCircuit::Unknown)
    );
    breaker.record_failure("a");
    let seen = breaker.get("a").unwrap().generation;
    breaker.force_open("a");
    let error = breaker.reset_if("a", seen).unwrap_err();
    assert_eq!(error, StaleCircuit::Moved(breaker.get("a").unwrap()));
    assert_eq!(error.to_string(), "the circuit has moved on to generation 3");
    let generation = breaker
        .reset_if("a", breaker.get("a").unwrap().generation)
        .unwrap();
    assert_eq!(
        (generation, breaker.is_open("a")),
        (Generation::from_u64(4), false)
    );
}

#[test]
fn the_idle_one_that_was_not_used_for_longest_makes_room() {
    let breaker = breaker(3);
    for name in ["old", "older", "old"] {
        drop(breaker.circuit(name));
    }
    breaker.record_failure("failing");
    drop(breaker.circuit("new"));
    assert_eq!(names(&breaker), ["failing", "new", "old"].map(Arc::from));
}

#[test]
fn what_is_in_use_stays_and_the_rest_is_let_through_untracked() {
    let breaker = breaker(2);
    let held = breaker.circuit("held");
    breaker.record_failure("failing");

    let permit = breaker.acquire("untracked").unwrap();
    permit.failure();
    assert!(!breaker.is_open("untracked"), "there was no room to count it");
    breaker.record_failure("untracked");
    assert!(!breaker.force_open("untracked"));
    assert_eq!(names(&breaker), ["failing", "held"].map(Arc::from));
    assert_eq!(breaker.snapshot().untracked, 3);

    drop(held);
    assert!(breaker.force_open("untracked"), "now there is room");
    assert_eq!(names(&breaker), ["failing", "untracked"].map(Arc::from));
}

#[test]
fn a_permit_keeps_its_circuit_in_use() {
    let breaker = breaker(1);
    let permit = breaker.acquire("first").unwrap();
    drop(breaker.circuit("second"));
    permit.failure();
    assert!(breaker.is_open("first"));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    use BreakerSettingsError as Error;
    let good = BreakerSettings::default;
    let hour = Duration::from_secs(3600);
    let cases = [
        (
            BreakerSettings {
                failure_threshold: 0,
                ..good()
            },
            Error::ZeroThreshold,
        ),
        (
            BreakerSettings {
                cooldown: Duration::ZERO,
                ..good()
            },
            Error::ZeroCooldown,
        ),
        (
            BreakerSettings {
                jitter: -0.1,
                ..good()
            },
            Error::JitterOutOfRange(-0.1),
        ),
        (
            BreakerSettings {
                jitter: 1.1,
                ..good()
            },
            Error::JitterOutOfRange(1.1),
        ),
        (
            BreakerSettings {
                jitter: f64::INFINITY,
                ..good()
            },
            Error::JitterOutOfRange(f64::INFINITY),
        ),
        (
            BreakerSettings {
                probe_lease: Duration::ZERO,
                ..good()
            },
            Error::ZeroProbeLease,
        ),
        (
            BreakerSettings {
                cooldown: hour,
                ..good()
            },
            Error::CooldownOverMaximum,
        ),
        (
            BreakerSettings {
                max_names: 0,
                ..good()
            },
            Error::ZeroNames,
        ),
    ];
    for (settings, expected) in cases {
        let refused = CircuitBreaker::new(settings, manual_clock().1).unwrap_err();
        assert_eq!(refused, expected, "{refused}");
    }
    let not_a_number = BreakerSettings {
        jitter: f64::NAN,
        ..good()
    };
    assert!(CircuitBreaker::new(not_a_number, manual_clock().1).is_err());
}

/// The clock is a parameter: nothing here reads the machine's.
#[test]
fn time_is_the_clocks() {
    let (clock, shared) = manual_clock();
    let breaker = CircuitBreaker::new(BreakerSettings::default(), shared).unwrap();
    breaker.record_failure_retry_after("a", Duration::from_secs(600));
    let before = clock.now();
    clock.advance(Duration::from_secs(599));
    assert!(breaker.is_open("a"));
    clock.advance(Duration::from_secs(1));
    assert!(!breaker.is_open("a"));
    assert_eq!(clock.now() - before, Duration::from_secs(600));
}
