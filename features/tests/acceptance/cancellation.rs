//! The steps of `cancellation.feature`.

use std::{
    sync::{Arc, Barrier},
    thread::{self, JoinHandle},
};

use cucumber::{World, given, then, when};
use kernel::CancellationToken;

use crate::{
    runner::{Tally, Which, run},
    subjects::cancellation::{BareClear, Cancellation, LockedClear},
};

#[test]
fn cancellation() {
    let tally = run::<TokenWorld>(
        "cancellation.feature",
        Which::All,
        TokenWorld::set_up::<CancellationToken>,
    );
    assert_eq!(tally, Tally { passed: 6, failed: 0 });
}

#[test]
fn the_bare_clear_of_the_report_is_caught() {
    let tally = run::<TokenWorld>(
        "cancellation.feature",
        Which::WhatCatches,
        TokenWorld::set_up::<BareClear>,
    );
    assert_eq!(tally, Tally { passed: 0, failed: 2 });
}

#[test]
fn the_suggested_lock_around_the_clear_is_caught() {
    let tally = run::<TokenWorld>(
        "cancellation.feature",
        Which::WhatCatches,
        TokenWorld::set_up::<LockedClear>,
    );
    assert_eq!(tally, Tally { passed: 0, failed: 2 });
}

/// A token of any kind.
trait Token: Send + Sync {
    fn begin(&self) -> Arc<dyn Run>;
    fn cancel(&self);
    fn reset(&self);
}

/// A run of a token of any kind.
trait Run: Send + Sync {
    fn is_cancelled(&self) -> bool;
    fn wait(&self);
}

struct RunOf<C: Cancellation>(C::Run);

impl<C: Cancellation> Token for C {
    fn begin(&self) -> Arc<dyn Run> {
        Arc::new(RunOf::<C>(Cancellation::begin(self)))
    }

    fn cancel(&self) {
        Cancellation::cancel(self);
    }

    fn reset(&self) {
        Cancellation::reset(self);
    }
}

impl<C: Cancellation> Run for RunOf<C> {
    fn is_cancelled(&self) -> bool {
        C::is_cancelled(&self.0)
    }

    fn wait(&self) {
        C::wait(&self.0);
    }
}

#[derive(Default, World)]
struct TokenWorld {
    token: Option<Arc<dyn Token>>,
    /// Met by a worker when it was woken, and again when it may go on.
    gate: Option<Arc<Barrier>>,
    workers: Vec<JoinHandle<bool>>,
    late_reset: Option<JoinHandle<()>>,
    second_run: Option<Arc<dyn Run>>,
}

impl std::fmt::Debug for TokenWorld {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenWorld")
    }
}

impl TokenWorld {
    fn set_up<C: Cancellation>(&mut self) {
        self.token = Some(Arc::new(C::new()));
    }

    fn token(&self) -> Arc<dyn Token> {
        Arc::clone(self.token.as_ref().expect("the set-up has made a token"))
    }

    fn gate(&self) -> Arc<Barrier> {
        Arc::clone(self.gate.as_ref().expect("a step before has made a gate"))
    }
}

#[given("a token")]
#[given("a token and a worker in its first run")]
fn a_token(_: &mut TokenWorld) {}

#[given("the worker is held after it was woken and before it looks")]
fn the_worker_is_held(world: &mut TokenWorld) {
    let (run, gate) = (world.token().begin(), Arc::new(Barrier::new(2)));
    world.gate = Some(Arc::clone(&gate));
    world.workers.push(thread::spawn(move || {
        run.wait();
        gate.wait();
        gate.wait();
        run.is_cancelled()
    }));
}

#[given("a token whose first run was cancelled")]
fn a_cancelled_token(world: &mut TokenWorld) {
    world.token().cancel();
}

#[given("an owner of the first run that is held just before its reset")]
fn a_held_owner(world: &mut TokenWorld) {
    let (token, gate) = (world.token(), Arc::new(Barrier::new(2)));
    world.gate = Some(Arc::clone(&gate));
    world.late_reset = Some(thread::spawn(move || {
        gate.wait();
        token.reset();
    }));
}

#[given(expr = "a token and {int} workers that wait for its cancellation")]
fn waiting_workers(world: &mut TokenWorld, count: usize) {
    let ready = Arc::new(Barrier::new(count + 1));
    for _ in 0..count {
        let (run, ready) = (world.token().begin(), Arc::clone(&ready));
        world.workers.push(thread::spawn(move || {
            ready.wait();
            run.wait();
            run.is_cancelled()
        }));
    }
    ready.wait();
}

#[when("the token is cancelled")]
fn cancel(world: &mut TokenWorld) {
    world.token().cancel();
}

#[when("the token is reset")]
fn reset(world: &mut TokenWorld) {
    // A worker that is held has been woken by now, so that the reset really comes beneath it.
    if !world.workers.is_empty() {
        world.gate().wait();
    }
    world.token().reset();
}

#[when("the worker goes on")]
fn the_worker_goes_on(world: &mut TokenWorld) {
    world.gate().wait();
}

#[when("a second run starts")]
fn a_second_run(world: &mut TokenWorld) {
    world.second_run = Some(world.token().begin());
}

#[when("the owner of the first run goes on with its reset")]
fn the_owner_goes_on(world: &mut TokenWorld) {
    world.gate().wait();
    world.late_reset.take().expect("an owner is held").join().unwrap();
}

#[when(expr = "a reset and then a cancel are forced by a barrier on two threads")]
fn reset_then_cancel(world: &mut TokenWorld) {
    in_order(&world.token(), |token| token.reset(), |token| token.cancel());
}

#[when(expr = "a cancel and then a reset are forced by a barrier on two threads")]
fn cancel_then_reset(world: &mut TokenWorld) {
    in_order(&world.token(), |token| token.cancel(), |token| token.reset());
}

/// Two calls on two threads, the second not before the first is done.
fn in_order(token: &Arc<dyn Token>, first: fn(&dyn Token), second: fn(&dyn Token)) {
    let barrier = Arc::new(Barrier::new(2));
    let (one, gate) = (Arc::clone(token), Arc::clone(&barrier));
    let thread = thread::spawn(move || {
        first(&*one);
        gate.wait();
    });
    barrier.wait();
    second(&**token);
    thread.join().unwrap();
}

#[then("the worker sees that it was cancelled")]
fn the_worker_sees(world: &mut TokenWorld) {
    let worker = world.workers.pop().expect("there is a worker");
    assert!(
        worker.join().unwrap(),
        "the worker was woken by a cancel and found none"
    );
}

#[then(expr = "all {int} workers see that they were cancelled")]
fn all_workers_see(world: &mut TokenWorld, count: usize) {
    let seen = world
        .workers
        .drain(..)
        .map(|worker| worker.join().unwrap())
        .filter(|seen| *seen)
        .count();
    assert_eq!(seen, count);
}

#[then("the second run is cancelled")]
fn the_second_run_is_cancelled(world: &mut TokenWorld) {
    let run = world.second_run.as_ref().expect("a second run has started");
    assert!(
        run.is_cancelled(),
        "the second run was told to stop and does not know it"
    );
}

#[then(expr = "a run that starts now is {word}")]
fn a_new_run(world: &mut TokenWorld, state: String) {
    assert_eq!(world.token().begin().is_cancelled(), state == "cancelled");
}
