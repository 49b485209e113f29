//! The steps of `circuit_breaker.feature`.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use cucumber::{World, given, then, when};
use kernel::{
    BreakerSettings, Circuit, CircuitBreaker, CircuitSnapshot, CircuitState, Clock, ManualClock, Permit,
};

use crate::{
    runner::{Tally, Which, run},
    subjects::breaker::{Breaker, NAME, Place, Unlocked},
};

#[test]
fn circuit_breaker() {
    let tally = run::<BreakerWorld>("circuit_breaker.feature", Which::All, |world| {
        world.kind = Kind::Ours
    });
    assert_eq!(
        tally,
        Tally {
            passed: 11,
            failed: 0
        }
    );
}

#[test]
fn the_unlocked_count_and_set_of_the_report_are_caught() {
    let tally = run::<BreakerWorld>("circuit_breaker.feature", Which::WhatCatches, |world| {
        world.kind = Kind::Unlocked
    });
    assert_eq!(tally, Tally { passed: 0, failed: 4 });
}

/// Which algorithm a scenario is run against.
#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Ours,
    Unlocked,
}

#[derive(Debug, World)]
#[world(init = Self::new)]
struct BreakerWorld {
    kind: Kind,
    failure_threshold: u32,
    clock: Arc<ManualClock>,
    /// Ours, for the scenarios that no faulty algorithm is run against.
    breaker: Option<CircuitBreaker>,
    failures: u64,
    is_open: bool,
    permits: Vec<Permit<Circuit>>,
    before_report: Option<CircuitSnapshot>,
    after_report: Option<CircuitSnapshot>,
}

impl BreakerWorld {
    fn new() -> Self {
        Self {
            kind: Kind::Ours,
            failure_threshold: 0,
            clock: ManualClock::new(),
            breaker: None,
            failures: 0,
            is_open: false,
            permits: Vec::new(),
            before_report: None,
            after_report: None,
        }
    }

    fn ours(&self) -> &CircuitBreaker {
        self.breaker.as_ref().expect("a step before has made a breaker")
    }

    fn circuit(&self) -> CircuitSnapshot {
        self.ours().get(NAME).expect("the circuit is known")
    }

    fn note<B: Breaker>(&mut self, breaker: &B) {
        self.failures = breaker.failures();
        self.is_open = breaker.is_open();
    }
}

#[given(expr = "a breaker that opens after {int} failures")]
fn a_breaker(world: &mut BreakerWorld, failure_threshold: u32) {
    let settings = BreakerSettings {
        failure_threshold,
        jitter: 0.0,
        ..BreakerSettings::default()
    };
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    world.failure_threshold = failure_threshold;
    world.breaker = Some(CircuitBreaker::new(settings, clock).expect("the settings are good"));
}

#[given(expr = "{int} failures were reported")]
fn failures_were_reported(world: &mut BreakerWorld, count: usize) {
    (0..count).for_each(|_| world.ours().record_failure(NAME));
}

#[given("a call that was let through")]
fn a_call(world: &mut BreakerWorld) {
    world.permits = vec![world.ours().acquire(NAME).expect("the circuit is closed")];
}

#[when(expr = "{int} threads report {int} failures each, all at once")]
fn many_failures(world: &mut BreakerWorld, threads: usize, each: usize) {
    let barrier = Arc::new(Barrier::new(threads));
    match world.kind {
        Kind::Ours => {
            let breaker = <CircuitBreaker as Breaker>::new(world.failure_threshold);
            let failing = breaker.clone();
            at_once(threads, move || {
                for _ in 0..each {
                    barrier.wait();
                    failing.record_failure(NAME);
                }
            });
            world.note(&breaker);
        }
        Kind::Unlocked => {
            // All threads have read the count before any of them writes it.
            let pause = move |place| {
                if place == Place::BetweenReadAndWrite {
                    barrier.wait();
                }
            };
            let breaker = Unlocked::with_pause(world.failure_threshold, Arc::new(pause));
            let failing = breaker.clone();
            at_once(threads, move || (0..each).for_each(|_| failing.record_failure()));
            world.note(&breaker);
        }
    }
}

fn at_once(threads: usize, work: impl Fn() + Clone + Send + 'static) {
    let threads: Vec<_> = (0..threads).map(|_| thread::spawn(work.clone())).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[when(expr = "a failure is reported and, before it is done, a success")]
fn failure_and_success(world: &mut BreakerWorld) {
    failure_and(world, Breaker::record_success, Breaker::record_success);
}

#[when(expr = "a failure is reported and, before it is done, a reset")]
fn failure_and_reset(world: &mut BreakerWorld) {
    failure_and(world, Breaker::reset, Breaker::reset);
}

#[when(expr = "a failure is reported and, before it is done, a reset of all")]
fn failure_and_reset_of_all(world: &mut BreakerWorld) {
    failure_and(world, Breaker::reset_all, Breaker::reset_all);
}

/// A failure on one thread and something else on another. The faulty algorithm is held in the middle of its
/// failure; ours has no middle, so the two start together.
fn failure_and(world: &mut BreakerWorld, ours: fn(&CircuitBreaker), faulty: fn(&Unlocked)) {
    let barrier = Arc::new(Barrier::new(2));
    match world.kind {
        Kind::Ours => {
            let breaker = <CircuitBreaker as Breaker>::new(world.failure_threshold);
            let (failing, start) = (breaker.clone(), Arc::clone(&barrier));
            let thread = thread::spawn(move || {
                start.wait();
                failing.record_failure(NAME);
            });
            barrier.wait();
            ours(&breaker);
            thread.join().unwrap();
            world.note(&breaker);
        }
        Kind::Unlocked => {
            let gate = Arc::clone(&barrier);
            let pause = move |place| {
                if place == Place::BetweenCountAndSwitch {
                    gate.wait();
                    gate.wait();
                }
            };
            let breaker = Unlocked::with_pause(world.failure_threshold, Arc::new(pause));
            let failing = breaker.clone();
            let thread = thread::spawn(move || failing.record_failure());
            barrier.wait();
            faulty(&breaker);
            barrier.wait();
            thread.join().unwrap();
            world.note(&breaker);
        }
    }
}

#[when("the cooldown has passed")]
fn the_cooldown_has_passed(world: &mut BreakerWorld) {
    world.clock.advance(BreakerSettings::default().cooldown);
}

#[when("the lease of the probe has passed")]
fn the_lease_has_passed(world: &mut BreakerWorld) {
    // The permit is neither settled nor dropped: it is simply never heard of again.
    world.permits.drain(..).for_each(std::mem::forget);
    world.clock.advance(BreakerSettings::default().probe_lease);
}

#[when(expr = "{int} callers ask at once")]
fn callers_ask(world: &mut BreakerWorld, count: usize) {
    let start = Arc::new(Barrier::new(count));
    let callers: Vec<_> = (0..count)
        .map(|_| {
            let (breaker, start) = (world.ours().clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                breaker.acquire(NAME)
            })
        })
        .collect();
    world.permits = callers
        .into_iter()
        .filter_map(|caller| caller.join().unwrap().ok())
        .collect();
}

#[when("the probe succeeds")]
fn the_probe_succeeds(world: &mut BreakerWorld) {
    world.permits.pop().expect("a probe is out").success();
}

#[when("the probe fails")]
fn the_probe_fails(world: &mut BreakerWorld) {
    world.permits.pop().expect("a probe is out").failure();
}

#[when("the circuit is reset")]
#[when("a reset happens")]
fn the_circuit_is_reset(world: &mut BreakerWorld) {
    assert!(world.ours().reset(NAME));
}

#[when("an opening happens")]
fn an_opening(world: &mut BreakerWorld) {
    failures_were_reported(world, 3);
}

#[when("a probe happens")]
fn a_probe(world: &mut BreakerWorld) {
    failures_were_reported(world, 3);
    world.clock.advance(BreakerSettings::default().cooldown);
    let probe = world.ours().acquire(NAME).expect("the cooldown is over");
    world.permits.insert(0, probe);
}

#[when("the call reports a success")]
fn the_call_reports(world: &mut BreakerWorld) {
    world.before_report = Some(world.circuit());
    world.permits.pop().expect("a call is under way").success();
    world.after_report = Some(world.circuit());
}

#[then(expr = "{int} failures are counted")]
fn failures_are_counted(world: &mut BreakerWorld, count: u64) {
    assert_eq!(world.failures, count);
}

#[then("the breaker is not open without a counted failure")]
fn not_torn(world: &mut BreakerWorld) {
    assert!(
        !world.is_open || world.failures > 0,
        "switched off, and no failure is counted"
    );
}

#[then(expr = "{int} of them is let through")]
fn let_through(world: &mut BreakerWorld, count: usize) {
    assert_eq!(world.permits.len(), count);
}

#[then(expr = "the circuit is {word}")]
fn the_circuit_is(world: &mut BreakerWorld, expected: String) {
    let state = match world.circuit().state {
        CircuitState::Closed => "closed",
        CircuitState::Open { retry_after } if retry_after > Duration::ZERO => "open",
        other => panic!("the circuit is {other:?}"),
    };
    assert_eq!(state, expected);
}

#[then("the circuit is as it was before that report")]
fn as_it_was(world: &mut BreakerWorld) {
    let before = world.before_report.take().expect("a report was made");
    let after = world.after_report.take().expect("a report was made");
    assert_eq!(
        after,
        CircuitSnapshot {
            late_reports: before.late_reports + 1,
            ..before
        }
    );
}
