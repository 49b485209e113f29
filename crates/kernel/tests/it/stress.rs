//! Many threads for ten seconds in all, and sums that must be exact.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kernel::{BreakerSettings, CancellationToken, CircuitBreaker, Deadline, Slot, SystemClock};

use crate::support::cause;

const THREADS: usize = 8;
const LENGTH: Duration = Duration::from_secs(3);

/// Runs `work` on several threads until the time is over, and returns how often it ran.
fn stress(work: impl Fn(usize) + Send + Sync + 'static) -> u64 {
    let end = Instant::now() + LENGTH;
    stress_until(move || Instant::now() >= end, work)
}

/// Runs `work` on several threads until it is done, and returns how often it ran.
fn stress_until(
    is_done: impl Fn() -> bool + Send + Sync + 'static,
    work: impl Fn(usize) + Send + Sync + 'static,
) -> u64 {
    let shared = Arc::new((is_done, work, Barrier::new(THREADS)));
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (is_done, work, start) = &*shared;
                start.wait();
                let mut count = 0;
                while !is_done() {
                    work(index);
                    count += 1;
                }
                count
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[test]
fn every_failure_is_counted_once() {
    let settings = BreakerSettings {
        failure_threshold: u32::MAX,
        ..BreakerSettings::default()
    };
    let breaker = CircuitBreaker::new(settings, SystemClock::shared()).unwrap();
    let shared = breaker.clone();
    let calls = stress(move |index| match index % 2 {
        0 => shared.record_failure("search"),
        _ => shared.acquire("search").unwrap().failure(),
    });
    let circuit = breaker.get("search").unwrap();
    assert_eq!(
        (circuit.failures, u64::from(circuit.consecutive_failures)),
        (calls, calls)
    );
}

fn restless() -> CircuitBreaker {
    let settings = BreakerSettings {
        failure_threshold: 2,
        cooldown: Duration::from_micros(50),
        ..BreakerSettings::default()
    };
    CircuitBreaker::new(settings, SystemClock::shared()).unwrap()
}

/// A circuit that opens, probes, closes and is reset all the time: still each call is refused or reports, and
/// each report is counted once.
#[test]
fn every_report_of_a_restless_circuit_is_counted_once() {
    let breaker = restless();
    let shared = breaker.clone();
    let (calls, resets) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, resetting) = (Arc::clone(&calls), Arc::clone(&resets));
    let circuit = breaker.circuit("search");
    stress(move |index| {
        if index == 0 {
            shared.reset_all();
            resetting.fetch_add(1, Ordering::SeqCst);
            return;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        if let Ok(permit) = circuit.acquire() {
            permit.failure();
        }
    });
    let circuit = breaker.get("search").unwrap();
    assert_eq!(
        circuit.failures + circuit.late_reports + circuit.refused,
        calls.load(Ordering::SeqCst)
    );
    assert!(circuit.generation.get() > resets.load(Ordering::SeqCst));
}

#[test]
fn a_probe_is_never_joined_by_another() {
    const PROBES: u64 = 10_000;
    let breaker = restless();
    let circuit = breaker.circuit("search");
    let (out, probes) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&probes);
    let is_done = move || probes.load(Ordering::SeqCst) >= PROBES;
    stress_until(is_done, move |_| {
        let Ok(permit) = circuit.acquire() else { return };
        if permit.is_probe() {
            assert_eq!(out.fetch_add(1, Ordering::SeqCst), 0, "two probes are out");
            let number = counted.fetch_add(1, Ordering::SeqCst);
            out.fetch_sub(1, Ordering::SeqCst);
            match number % 3 {
                0 => permit.success(),
                1 => permit.failure(),
                _ => drop(permit),
            }
        } else {
            permit.failure();
        }
    });
}

/// One thread runs, run after run; the others cancel. Each cancel that counted ended exactly one run.
#[test]
fn every_cancel_ends_one_run() {
    const RUNS: u64 = 10_000;
    let token = CancellationToken::new();
    let running = token.clone();
    let (cancels, runs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (cancelled, ended) = (Arc::clone(&cancels), Arc::clone(&runs));
    let is_done = move || runs.load(Ordering::SeqCst) >= RUNS;
    stress_until(is_done, move |index| {
        if index > 0 {
            if running.cancel(cause("stress")) {
                cancelled.fetch_add(1, Ordering::SeqCst);
            } else {
                thread::yield_now();
            }
            return;
        }
        let scope = running.scope();
        // Somebody cancels as long as this thread has not done all its runs.
        scope.wait_blocking(Deadline::never()).unwrap();
        assert!(scope.is_cancelled());
        running.reset_scope(&scope).unwrap();
        assert!(scope.is_cancelled(), "a reset took the cancel back");
        ended.fetch_add(1, Ordering::SeqCst);
    });
    let still_cancelled = u64::from(token.is_cancelled());
    assert_eq!(cancels.load(Ordering::SeqCst), RUNS + still_cancelled);
}

#[test]
fn transitions_by_generation_lose_no_update() {
    let slot = Slot::new(0_u64);
    let shared = slot.clone();
    let calls = stress(move |_| {
        let mut seen = shared.read();
        while let Err(stale) = shared.transition(seen.generation, *seen.state + 1) {
            seen = stale.current;
        }
    });
    let seen = slot.read();
    assert_eq!((*seen.state, seen.generation.get()), (calls, calls + 1));
}
