//! The steps of `lsp_restart.feature`.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use cucumber::{World, given, then, when};
use kernel::{Deadline, ManualClock, SystemClock};
use lsp::Patience;
use tokio::task::JoinHandle;

use crate::{
    lifecycle_subjects::restart::{Answer, Client, Seen, Trouble},
    lsp_restart_process::nothing_is_left,
    lsp_restart_transport::{EXIT_CODE, LAST_WORDS, Stage, Subject, open, stubborn},
    runner::{Tally, Which, run},
};

#[test]
fn lsp_restart() {
    let tally = run::<ServerWorld>("lsp_restart.feature", Which::All, |world| {
        world.subject = Subject::Ours
    });
    assert_eq!(
        tally,
        Tally {
            passed: 27,
            failed: 0
        }
    );
    nothing_is_left(Subject::Ours);
}

#[test]
fn the_delete_then_insert_of_the_report_is_caught() {
    let tally = run::<ServerWorld>("lsp_restart.feature", Which::WhatCatches, |world| {
        world.subject = Subject::DeleteThenInsert
    });
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: 23
        }
    );
    nothing_is_left(Subject::DeleteThenInsert);
}

/// Far more than any step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often other tasks are let run before something counts as not happening.
const TURNS: usize = 200;

const NAME: &str = "ruff";
const ANOTHER: &str = "ty";

#[derive(Default, World)]
struct ServerWorld {
    subject: Subject,
    stage: Option<Stage>,
    /// The clock of scenarios in which time passes.
    clock: Option<Arc<ManualClock>>,
    restarts: Vec<JoinHandle<Result<u64, Trouble>>>,
    starts: Vec<JoinHandle<Result<u64, Trouble>>>,
    stops: Vec<JoinHandle<Result<(), Trouble>>>,
    asking: Vec<JoinHandle<Result<Client, Trouble>>>,
    hasty: Option<Result<Client, Trouble>>,
    /// Those who have what they asked for; the first is the one of before.
    clients: Vec<Client>,
}

impl fmt::Debug for ServerWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerWorld")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

impl ServerWorld {
    fn stage(&self) -> &Stage {
        self.stage.as_ref().expect("a step before has opened a transport")
    }

    fn wait() -> Patience {
        Patience::Wait(Self::deadline())
    }

    /// Steps have the time of the machine, whatever time it is for the servers.
    fn deadline() -> Deadline {
        Deadline::after(&SystemClock::shared(), PATIENCE)
    }

    async fn seen(&self) -> Seen {
        self.stage().servers.health(NAME).await.unwrap()
    }
}

/// Lets others run until it is as wanted.
async fn until(mut is_as_wanted: impl FnMut() -> bool) {
    let waiting = async {
        while !is_as_wanted() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("what was waited for has not happened");
}

async fn others_run() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

async fn result_of<T>(task: JoinHandle<T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, task).await;
    waited.expect("the call is answered").unwrap()
}

async fn results_of<T>(tasks: &mut Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks.drain(..) {
        results.push(result_of(task).await);
    }
    results
}

/// Starts a call, and lets it get as far as it can.
async fn begin<T: Send + 'static>(call: Answer<T>) -> JoinHandle<Result<T, Trouble>> {
    let task = tokio::spawn(call);
    others_run().await;
    task
}

/// What a call says without waiting for anything.
fn at_once<T>(mut call: Answer<T>) -> Result<T, Trouble> {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("there is no answer at once"),
    }
}

#[given(expr = "no server yet over {transport}")]
async fn no_server(world: &mut ServerWorld, transport: Transport) {
    world.stage = Some(open(&transport.0, world.subject).await);
}

#[given(expr = "a server over {transport}")]
async fn a_server(world: &mut ServerWorld, transport: Transport) {
    no_server(world, transport).await;
    let started = world.stage().servers.start(NAME, &ServerWorld::deadline()).await;
    assert_eq!(started, Ok(1));
}

/// The rest of a line, which names a transport.
#[derive(Debug, cucumber::Parameter)]
#[param(name = "transport", regex = "in-memory|real process")]
struct Transport(String);

impl std::str::FromStr for Transport {
    type Err = std::convert::Infallible;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(Self(name.to_owned()))
    }
}

#[given(expr = "{int} servers in memory that hang at their stop")]
async fn stubborn_servers(world: &mut ServerWorld, count: usize) {
    let clock = ManualClock::new();
    world.clock = Some(Arc::clone(&clock));
    let stage = Stage::new(stubborn(), world.subject, clock);
    for number in 0..count {
        let name = format!("server-{number}");
        let started = stage.servers.start(&name, &ServerWorld::deadline()).await;
        assert!(started.is_ok(), "{started:?}");
    }
    world.stage = Some(stage);
}

#[given("a client that uses it")]
async fn a_client(world: &mut ServerWorld) {
    let client = world.stage().servers.get_client(NAME, ServerWorld::wait()).await;
    world.clients.extend(client);
    assert_eq!(world.clients.len(), 1);
}

#[given("servers hang at initialize")]
fn servers_hang(world: &mut ServerWorld) {
    world.stage().director.hang_at_initialize();
}

#[when("servers answer initialize again")]
fn servers_answer(world: &mut ServerWorld) {
    world.stage().director.answer_from_now_on();
}

#[when("somebody begins a restart")]
async fn a_restart(world: &mut ServerWorld) {
    let stage = world.stage();
    let launched = stage.director.launched();
    let restart = begin(stage.servers.restart(NAME, &ServerWorld::deadline())).await;
    // In the window: the old process is gone, and the new one is on its way up.
    until(|| stage.director.launched() > launched).await;
    world.restarts.push(restart);
}

#[when(expr = "{int} others begin a restart")]
async fn other_restarts(world: &mut ServerWorld, count: usize) {
    for _ in 0..count {
        let restart = world.stage().servers.restart(NAME, &ServerWorld::deadline());
        world.restarts.push(begin(restart).await);
    }
}

#[when(expr = "{int} others begin a start")]
async fn other_starts(world: &mut ServerWorld, count: usize) {
    for _ in 0..count {
        let start = world.stage().servers.start(NAME, &ServerWorld::deadline());
        world.starts.push(begin(start).await);
    }
    until(|| world.stage().director.launched() > 0).await;
}

#[when("somebody starts the server")]
async fn a_start(world: &mut ServerWorld) {
    other_starts(world, 1).await;
}

#[when("somebody starts another server")]
async fn another_server(world: &mut ServerWorld) {
    let launched = world.stage().director.launched();
    let start = world.stage().servers.start(ANOTHER, &ServerWorld::deadline());
    world.starts.push(begin(start).await);
    until(|| world.stage().director.launched() > launched).await;
}

#[when("somebody stops the server")]
async fn a_stop(world: &mut ServerWorld) {
    let stop = world.stage().servers.stop(NAME, &ServerWorld::deadline());
    world.stops.push(begin(stop).await);
}

#[when(expr = "all servers are stopped with {int} seconds for each")]
async fn a_stop_of_all(world: &mut ServerWorld, seconds: u64) {
    let stage = world.stage();
    let stop = stage.servers.stop_all(Duration::from_secs(seconds), &stage.clock);
    world.stops.push(begin(stop).await);
}

#[when(expr = "{int} seconds pass")]
async fn seconds_pass(world: &mut ServerWorld, seconds: u64) {
    let clock = world.clock.as_ref().expect("time is in our hands");
    clock.advance(Duration::from_secs(seconds));
    others_run().await;
}

#[when("a client asks for the server and does not want to wait")]
async fn a_hasty_client(world: &mut ServerWorld) {
    let client = world.stage().servers.get_client(NAME, Patience::NoWait).await;
    world.hasty = Some(client);
}

#[when(expr = "{int} clients ask for the server and wait")]
async fn patient_clients(world: &mut ServerWorld, count: usize) {
    for _ in 0..count {
        let client = world.stage().servers.get_client(NAME, ServerWorld::wait());
        world.asking.push(begin(client).await);
    }
}

#[when("the first client goes")]
fn the_first_goes(world: &mut ServerWorld) {
    drop(world.clients.remove(0));
}

#[when("all clients go")]
fn all_go(world: &mut ServerWorld) {
    world.clients.clear();
}

#[when("the server answers initialize")]
async fn the_server_answers(world: &mut ServerWorld) {
    world.stage().director.answer_initialize();
    others_run().await;
}

#[when("the server fails at initialize")]
async fn the_server_fails(world: &mut ServerWorld) {
    world.stage().director.fail_at_initialize();
    others_run().await;
}

#[when("the server dies")]
async fn the_server_dies(world: &mut ServerWorld) {
    let director = &world.stage().director;
    director.die();
    until(|| director.is_death_known()).await;
}

#[then(expr = "a health check says {word} with generation {int} at once")]
fn health(world: &mut ServerWorld, state: String, generation: u64) {
    let seen = at_once(world.stage().servers.health(NAME));
    let seen = seen.map(|seen| (seen.state, seen.generation));
    assert_eq!(seen, Ok((state, generation)));
}

#[then(expr = "every restart has led to generation {int}")]
async fn every_restart(world: &mut ServerWorld, generation: u64) {
    let results = results_of(&mut world.restarts).await;
    assert!(!results.is_empty());
    assert_eq!(results, vec![Ok(generation); results.len()]);
}

#[then(expr = "every start has led to generation {int}")]
async fn every_start(world: &mut ServerWorld, generation: u64) {
    let results = results_of(&mut world.starts).await;
    assert!(!results.is_empty());
    assert_eq!(results, vec![Ok(generation); results.len()]);
}

#[then(expr = "{int} processes were launched and {int} is/are alive")]
async fn processes(world: &mut ServerWorld, launched: usize, alive: usize) {
    let director = &world.stage().director;
    assert_eq!((director.launched(), director.alive()), (launched, alive));
}

#[then("the client is told that the server is restarting")]
fn told_restarting(world: &mut ServerWorld) {
    let hasty = world.hasty.take().expect("a client has asked");
    assert_eq!(hasty.err(), Some(Trouble::Restarting));
}

#[then("a client that comes now is told that the server is stopped")]
async fn told_stopped(world: &mut ServerWorld) {
    let client = world.stage().servers.get_client(NAME, ServerWorld::wait()).await;
    assert_eq!(client.err(), Some(Trouble::Stopped));
}

#[then(expr = "all {int} clients have generation {int}")]
async fn clients_have(world: &mut ServerWorld, count: usize, generation: u64) {
    let clients: Result<Vec<_>, _> = results_of(&mut world.asking).await.into_iter().collect();
    let clients = clients.unwrap_or_else(|trouble| panic!("a client was told {trouble:?}"));
    assert_eq!(clients.len(), count);
    for client in &clients {
        assert_eq!((client.generation)().await, Ok(generation));
    }
    world.clients.extend(clients);
}

#[then(expr = "the first client is led to generation {int}")]
async fn the_first_is_led(world: &mut ServerWorld, generation: u64) {
    assert_eq!((world.clients[0].generation)().await, Ok(generation));
}

#[then(expr = "{int} leases are counted")]
async fn leases(world: &mut ServerWorld, count: usize) {
    assert_eq!(world.seen().await.leases, count);
}

/// What everybody who waits is told.
async fn troubles(world: &mut ServerWorld) -> Vec<Option<Trouble>> {
    let mut told: Vec<Option<Trouble>> = Vec::new();
    told.extend(results_of(&mut world.restarts).await.into_iter().map(Result::err));
    told.extend(results_of(&mut world.starts).await.into_iter().map(Result::err));
    told.extend(results_of(&mut world.asking).await.into_iter().map(Result::err));
    assert!(!told.is_empty());
    told
}

#[then("everybody is told why")]
async fn told_why(world: &mut ServerWorld) {
    for trouble in troubles(world).await {
        let Some(Trouble::Failed(reason)) = &trouble else {
            panic!("instead of a reason: {trouble:?}");
        };
        let code = format!("exit code {EXIT_CODE}");
        assert!(reason.contains(&code) && reason.contains(LAST_WORDS), "{reason}");
    }
}

#[then("everybody is told that the server is stopped")]
async fn all_told_stopped(world: &mut ServerWorld) {
    let told = troubles(world).await;
    assert_eq!(told, vec![Some(Trouble::Stopped); told.len()]);
}

#[then("the stop is done")]
async fn the_stop_is_done(world: &mut ServerWorld) {
    assert_eq!(results_of(&mut world.stops).await, [Ok(())]);
}

#[then("the stop of all is over")]
async fn the_stop_of_all_is_over(world: &mut ServerWorld) {
    others_run().await;
    assert!(
        world.stops.iter().all(JoinHandle::is_finished),
        "more than one deadline"
    );
    assert_eq!(results_of(&mut world.stops).await, [Ok(())]);
}
