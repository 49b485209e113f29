//! One circuit: how it opens, probes, closes, and what does not move it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use kernel::{
    BreakerSettings, CircuitBreaker, CircuitOpen, CircuitSnapshot, CircuitState, Generation, ManualClock,
};

use crate::support::manual_clock;

const COOLDOWN: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(60);
const NAME: &str = "search";

fn breaker() -> (CircuitBreaker, Arc<ManualClock>) {
    let (clock, shared) = manual_clock();
    let settings = BreakerSettings {
        jitter: 0.0,
        ..BreakerSettings::default()
    };
    (CircuitBreaker::new(settings, shared).unwrap(), clock)
}

fn open_breaker() -> (CircuitBreaker, Arc<ManualClock>) {
    let (breaker, clock) = breaker();
    for _ in 0..3 {
        breaker.acquire(NAME).unwrap().failure();
    }
    (breaker, clock)
}

fn state(breaker: &CircuitBreaker) -> CircuitState {
    breaker.get(NAME).unwrap().state
}

#[test]
fn a_name_that_is_not_known_is_closed() {
    let (breaker, _) = breaker();
    assert!(!breaker.is_open(NAME));
    assert!(!breaker.reset(NAME));
    breaker.record_success(NAME);
    assert_eq!(breaker.get(NAME), None);
    assert!(breaker.snapshot().circuits.is_empty());
}

#[test]
fn three_failures_in_a_row_open_it() {
    let (breaker, _) = breaker();
    for failures in 1..=3 {
        assert!(!breaker.is_open(NAME));
        breaker.acquire(NAME).unwrap().failure();
        assert_eq!(breaker.get(NAME).unwrap().failures, failures);
    }
    assert!(breaker.is_open(NAME));
    assert_eq!(
        breaker.acquire(NAME).unwrap_err(),
        CircuitOpen {
            retry_after: Some(COOLDOWN)
        }
    );
    let expected = CircuitSnapshot {
        name: Arc::from(NAME),
        state: CircuitState::Open {
            retry_after: COOLDOWN,
        },
        generation: Generation::from_u64(2),
        consecutive_failures: 0,
        failures: 3,
        refused: 1,
        late_reports: 0,
        times_opened: 1,
    };
    assert_eq!(breaker.get(NAME), Some(expected));
}

#[test]
fn a_success_in_between_starts_the_count_again() {
    let (breaker, _) = breaker();
    for _ in 0..10 {
        breaker.record_failure(NAME);
        breaker.record_failure(NAME);
        assert_eq!(breaker.get(NAME).unwrap().consecutive_failures, 2);
        breaker.acquire(NAME).unwrap().success();
        assert_eq!(breaker.get(NAME).unwrap().consecutive_failures, 0);
    }
    assert!(!breaker.is_open(NAME));
}

#[test]
fn after_the_cooldown_one_probe_closes_it() {
    let (breaker, clock) = open_breaker();
    clock.advance(COOLDOWN - Duration::from_millis(1));
    assert!(breaker.is_open(NAME));
    clock.advance(Duration::from_millis(1));
    assert!(!breaker.is_open(NAME));
    assert_eq!(state(&breaker), CircuitState::HalfOpen { probing: false });

    let probe = breaker.acquire(NAME).unwrap();
    assert!(probe.is_probe());
    assert_eq!(state(&breaker), CircuitState::HalfOpen { probing: true });
    assert!(breaker.is_open(NAME), "others are refused while the probe is out");
    assert_eq!(
        breaker.acquire(NAME).unwrap_err(),
        CircuitOpen {
            retry_after: Some(LEASE)
        }
    );
    probe.success();
    assert_eq!(state(&breaker), CircuitState::Closed);
    assert!(!breaker.acquire(NAME).unwrap().is_probe());
}

#[test]
fn a_failed_probe_opens_it_again() {
    let (breaker, clock) = open_breaker();
    clock.advance(COOLDOWN);
    breaker.acquire(NAME).unwrap().failure();
    assert_eq!(
        state(&breaker),
        CircuitState::Open {
            retry_after: COOLDOWN
        }
    );
    assert_eq!(breaker.get(NAME).unwrap().times_opened, 2);
}

#[test]
fn a_probe_that_was_dropped_or_panicked_frees_the_place() {
    let (breaker, clock) = open_breaker();
    clock.advance(COOLDOWN);
    drop(breaker.acquire(NAME).unwrap());
    let circuit = breaker.circuit(NAME);
    catch_unwind(AssertUnwindSafe(|| {
        let _probe = circuit.acquire().unwrap();
        panic!("in the middle of a probe");
    }))
    .unwrap_err();
    assert_eq!(state(&breaker), CircuitState::HalfOpen { probing: false });
    breaker.acquire(NAME).unwrap().success();
    assert_eq!(state(&breaker), CircuitState::Closed);
}

#[test]
fn a_probe_that_never_settles_is_given_up_after_its_lease() {
    let (breaker, clock) = open_breaker();
    clock.advance(COOLDOWN);
    let lost = breaker.acquire(NAME).unwrap();
    clock.advance(LEASE);
    assert_eq!(state(&breaker), CircuitState::HalfOpen { probing: false });
    let second = breaker.acquire(NAME).unwrap();
    lost.success();
    assert_eq!(
        state(&breaker),
        CircuitState::HalfOpen { probing: true },
        "the lost one decides nothing"
    );
    second.failure();
    assert_eq!(
        state(&breaker),
        CircuitState::Open {
            retry_after: COOLDOWN
        }
    );
    assert_eq!(breaker.get(NAME).unwrap().late_reports, 1);
}

#[test]
fn late_reports_change_nothing() {
    let (breaker, clock) = breaker();
    let circuit = breaker.circuit(NAME);
    let permits: Vec<_> = (0..4).map(|_| circuit.acquire().unwrap()).collect();
    for _ in 0..3 {
        circuit.acquire().unwrap().failure();
    }
    let mut late = permits.into_iter();
    let (before, mut count) = (breaker.get(NAME).unwrap(), 0);
    let mut check = |expected: CircuitState| {
        count += 1;
        assert_eq!(
            (state(&breaker), breaker.get(NAME).unwrap().late_reports),
            (expected, count)
        );
    };
    late.next().unwrap().success();
    check(before.state);
    late.next().unwrap().failure();
    check(before.state);

    clock.advance(COOLDOWN);
    let probe = circuit.acquire().unwrap();
    late.next().unwrap().success();
    check(CircuitState::HalfOpen { probing: true });
    probe.success();
    late.next().unwrap().failure_retry_after(COOLDOWN);
    check(CircuitState::Closed);
    assert_eq!(breaker.get(NAME).unwrap().failures, 3);
}

#[test]
fn a_call_that_had_no_permit_counts_as_if_let_through_now() {
    let (breaker, clock) = open_breaker();
    breaker.record_success(NAME);
    breaker.record_failure(NAME);
    assert_eq!(
        state(&breaker),
        CircuitState::Open {
            retry_after: COOLDOWN
        }
    );
    assert_eq!(breaker.get(NAME).unwrap().late_reports, 2);

    clock.advance(COOLDOWN);
    breaker.record_failure(NAME);
    assert_eq!(
        state(&breaker),
        CircuitState::Open {
            retry_after: COOLDOWN
        }
    );
    clock.advance(COOLDOWN);
    let probe = breaker.acquire(NAME).unwrap();
    breaker.record_success(NAME);
    assert_eq!(
        state(&breaker),
        CircuitState::HalfOpen { probing: true },
        "only the probe decides"
    );
    drop(probe);
    breaker.record_success(NAME);
    assert_eq!(state(&breaker), CircuitState::Closed);
    assert_eq!(
        breaker.get(NAME).unwrap().refused,
        0,
        "nobody asked, so nobody was refused"
    );
}

#[test]
fn a_server_that_names_a_time_is_not_asked_before() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    for (retry_after, expected) in [
        (Duration::ZERO, COOLDOWN),
        (COOLDOWN / 2, COOLDOWN),
        (minutes(5), minutes(5)),
        (minutes(600), minutes(60)),
    ] {
        let (breaker, _) = breaker();
        breaker.acquire(NAME).unwrap().failure_retry_after(retry_after);
        assert_eq!(
            state(&breaker),
            CircuitState::Open {
                retry_after: expected
            },
            "asked for {retry_after:?}"
        );
        breaker.record_failure_retry_after("unasked", retry_after);
        assert_eq!(
            breaker.get("unasked").unwrap().state,
            CircuitState::Open {
                retry_after: expected
            }
        );
    }
}

#[test]
fn the_cooldown_is_spread_by_jitter() {
    let (_, shared) = manual_clock();
    let breaker = CircuitBreaker::new(BreakerSettings::default(), shared).unwrap();
    for index in 0..200 {
        breaker.record_failure_retry_after(&index.to_string(), Duration::ZERO);
    }
    let mut cooldowns: Vec<_> = breaker
        .snapshot()
        .circuits
        .into_iter()
        .map(|circuit| match circuit.state {
            CircuitState::Open { retry_after } => retry_after,
            other => panic!("{other:?}"),
        })
        .collect();
    cooldowns.sort();
    cooldowns.dedup();
    assert!(cooldowns.len() > 150, "they are spread: {}", cooldowns.len());
    assert!(cooldowns[0] >= COOLDOWN && cooldowns[cooldowns.len() - 1] <= COOLDOWN.mul_f64(1.2));
}

#[test]
fn forced_by_hand_it_takes_no_notice_until_it_is_reset() {
    let (breaker, clock) = breaker();
    assert!(breaker.force_open(NAME));
    clock.advance(10 * COOLDOWN);
    assert_eq!(
        breaker.acquire(NAME).unwrap_err(),
        CircuitOpen { retry_after: None }
    );
    breaker.record_success(NAME);
    assert_eq!(state(&breaker), CircuitState::ForcedOpen);

    assert!(breaker.force_closed(NAME));
    for _ in 0..10 {
        breaker.acquire(NAME).unwrap().failure();
        breaker.acquire(NAME).unwrap().success();
    }
    assert_eq!(state(&breaker), CircuitState::ForcedClosed);
    assert_eq!(breaker.get(NAME).unwrap().failures, 10);
    assert!(breaker.reset(NAME));
    assert_eq!(state(&breaker), CircuitState::Closed);
}

/// 64 callers meet a half-open circuit at once.
#[test]
fn of_64_callers_racing_into_half_open_one_goes_through() {
    for _ in 0..50 {
        let (breaker, clock) = open_breaker();
        clock.advance(COOLDOWN);
        let start = Arc::new(Barrier::new(64));
        let callers: Vec<_> = (0..64)
            .map(|_| {
                let (circuit, start) = (breaker.circuit(NAME), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    circuit.acquire_owned()
                })
            })
            .collect();
        // The permits are kept until all have asked, so that no place becomes free meanwhile.
        let answers: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    }
}
