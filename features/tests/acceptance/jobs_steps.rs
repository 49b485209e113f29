//! The steps of `jobs.feature`.

use std::time::Duration;

use cucumber::{given, then, when};
use jobs::{AttemptVerdict, State};
use kernel::Deadline;
use protocol::{JobIfInterrupted, JobState};

use crate::{
    job_subjects::{
        board::{Order, Script, progress},
        daemon::{
            LEASE, by_a_test, counted, ended, history, in_state, job, job_with, rival_cancel, submit, until,
            within,
        },
    },
    jobs_faulty::row,
    jobs_feature::{DELAY, FIRST, JobWorld, OTHER, Subject, is_in, name, runs_as},
};

/// What a heartbeat says.
const BEAT: u64 = 7;
/// How long an attempt may take, and a daemon may drain: too short for a lease to run out.
const LIMIT_MS: u64 = 3_000;
const DRAIN: Duration = Duration::from_millis(LIMIT_MS);

#[given(expr = "a job on {word} that two daemons have seen queued")]
async fn seen_by_two(world: &mut JobWorld, engine: String) {
    world.open(&engine).await;
    let mut new = job("a job", Script::Ordered);
    new.delay = DELAY;
    let id = submit(world.jobs(), new).await;
    world.job = Some(id);
    world.start_other().await;
    for daemon in [&world.first, &world.other].into_iter().flatten() {
        counted(&daemon.jobs, |counts| counts.queued == 1).await;
    }
    for worker in [FIRST, OTHER].map(|name| world.faulty(name)) {
        let seen = worker.poll(id).await;
        world.rows.push((worker, seen));
    }
}

#[given(expr = "a job on {word} that runs")]
async fn one_that_runs(world: &mut JobWorld, engine: String) {
    world.open(&engine).await;
    world.run_first(job("a job", Script::Ordered)).await;
}

#[given(expr = "a job on {word} that runs and may be repeated")]
async fn one_that_may_be_repeated(world: &mut JobWorld, engine: String) {
    world.open(&engine).await;
    let new = job_with("a job", Script::Ordered, |facts| {
        facts.if_interrupted = JobIfInterrupted::Repeat;
    });
    world.run_first(new).await;
}

#[given(expr = "a job on {word} that runs and must not be repeated")]
async fn one_that_must_not_be_repeated(world: &mut JobWorld, engine: String) {
    one_that_runs(world, engine).await;
}

#[given(expr = "a job on {word} that stalls its worker")]
async fn one_that_stalls(world: &mut JobWorld, engine: String) {
    world.open(&engine).await;
    let new = job_with("a job", Script::Stall, |facts| {
        facts.if_interrupted = JobIfInterrupted::Repeat;
    });
    world.run_first(new).await;
}

#[given(expr = "a job on {word} that runs for at most 3 seconds")]
async fn one_with_a_limit(world: &mut JobWorld, engine: String) {
    world.open(&engine).await;
    let new = job_with("a job", Script::Ordered, |facts| {
        facts.time_limit_ms = Some(LIMIT_MS)
    });
    world.run_first(new).await;
}

#[given(expr = "a job on {word} that fails and may be tried {int} times more")]
async fn one_that_fails(world: &mut JobWorld, engine: String, retries: u16) {
    world.open(&engine).await;
    let new = job_with("a job", Script::Fail, |facts| facts.retry.max_retries = retries);
    world.run_first(new).await;
}

#[given("another daemon beside it")]
#[when("another daemon starts")]
async fn another_daemon(world: &mut JobWorld) {
    world.start_other().await;
    if world.subject == Subject::UnfencedReset && world.other.is_none() {
        let worker = world.faulty(OTHER);
        let put_back = worker.reset(world.id()).await;
        let claimed = worker.mark(&put_back).await;
        world.rows.push((worker, claimed));
    }
}

#[given("its worker is about to write a heartbeat")]
async fn about_to_beat(world: &mut JobWorld) {
    world.heartbeat = Some(row(&world.now().await));
}

#[when("the heartbeat is written")]
async fn the_heartbeat_is_written(world: &mut JobWorld) {
    if !world.is_ours() {
        let read = world.heartbeat.clone().expect("it was about to be written");
        return world.faulty(FIRST).heartbeat(&read).await;
    }
    // What a heartbeat is here: the lease of the worker, and how far the job is.
    let run = world.board.run(world.id(), 1).await;
    let has_ended = world.now().await.record.state.is_terminal();
    let output = run.output.as_ref().expect("somewhere to say it");
    let said = within("it is said", output.progress(progress(BEAT))).await;
    world.clock.advance(LEASE / 3);
    if has_ended {
        return assert!(said.is_err(), "nobody listens any more");
    }
    world
        .passing(Duration::from_millis(50), "the heartbeat is on disk", || async {
            let summary = world.jobs().output_summary(world.id()).await.unwrap();
            summary.progress == Some(progress(BEAT))
        })
        .await;
}

#[when("both go for it")]
async fn both_go_for_it(world: &mut JobWorld) {
    if !world.is_ours() {
        for (worker, seen) in &mut world.rows {
            *seen = worker.mark(seen).await;
        }
        world.board.until("both run", |shown| shown.runs.len() == 2).await;
        return;
    }
    // The time of a server is measured, so it is not known to the millisecond.
    world.clock.advance(DELAY + Duration::from_millis(100));
    let (Some(first), Some(other)) = (&world.first, &world.other) else {
        panic!("there are two daemons")
    };
    counted(&first.jobs, |first| {
        first.lost_claims + other.jobs.counts().lost_claims == 1
    })
    .await;
}

#[when("whoever runs it is done")]
async fn whoever_runs_it_is_done(world: &mut JobWorld) {
    world.board.run(world.id(), 1).await;
    end_all(world, AttemptVerdict::Succeeded).await;
    ended(world.jobs(), world.id()).await;
}

/// Ends all runs that there are.
async fn end_all(world: &mut JobWorld, verdict: AttemptVerdict) {
    for run in world.board.runs_of(world.id()) {
        run.order(Order::End(verdict));
    }
    for (worker, claimed) in &world.rows {
        if !world.is_ours() {
            worker.finish(claimed, verdict).await;
        }
    }
}

#[when("its handler succeeds")]
async fn its_handler_succeeds(world: &mut JobWorld) {
    end_all(world, AttemptVerdict::Succeeded).await;
}

#[when("its handler fails")]
async fn its_handler_fails(world: &mut JobWorld) {
    end_all(world, AttemptVerdict::Failed).await;
}

#[when("its handler does as it is told")]
#[when("its handler waits for its stop")]
async fn its_handler_obeys(world: &mut JobWorld) {
    world.board.run(world.id(), 1).await.order(Order::ObeyStop);
}

#[when("it has come to its end")]
async fn it_has_ended(world: &mut JobWorld) {
    ended(world.jobs(), world.id()).await;
}

#[when("somebody cancels it")]
async fn somebody_cancels(world: &mut JobWorld) {
    world.jobs().cancel(world.id(), by_a_test()).await.unwrap();
}

#[when("another process writes a wish to cancel it")]
async fn a_wish_from_elsewhere(world: &mut JobWorld) {
    rival_cancel(&world.database().other, &world.now().await).await;
}

#[when("its time is over")]
async fn its_time_is_over(world: &mut JobWorld) {
    world.clock.advance(Duration::from_millis(LIMIT_MS));
    let run = world.board.run(world.id(), 1).await;
    until("it is told to stop", || async {
        run.scope.is_cancelled().then_some(())
    })
    .await;
}

#[when("all its pauses are over")]
async fn all_pauses_are_over(world: &mut JobWorld) {
    world
        .comes_to("its end", |job| job.record.state.is_terminal())
        .await;
}

#[when("the first daemon is killed")]
async fn the_first_is_killed(world: &mut JobWorld) {
    world.first.take().expect("it lives").kill().await;
}

#[when("its lease is over")]
async fn its_lease_is_over(world: &mut JobWorld) {
    if world.is_ours() {
        world.end_lease().await;
    }
}

#[when("the next daemon of its home has started")]
async fn the_next_daemon(world: &mut JobWorld) {
    world.start_first().await;
}

#[when("the other daemon has taken it over")]
async fn the_other_has_it(world: &mut JobWorld) {
    world.comes_to("be taken over", |job| runs_as(job, 2)).await;
    let run = world.board.run(world.id(), 2).await;
    assert_eq!(&*run.daemon, OTHER);
}

#[when("the first handler is done after all")]
async fn the_first_is_done(world: &mut JobWorld) {
    finish_run(world, 1).await;
}

#[when("the second handler is done")]
async fn the_second_is_done(world: &mut JobWorld) {
    finish_run(world, 2).await;
}

async fn finish_run(world: &mut JobWorld, number: usize) {
    let run = world.board.run(world.id(), number).await;
    if !world.is_ours() {
        let (worker, claimed) = &world.rows[number - 1];
        return worker.finish(claimed, AttemptVerdict::Succeeded).await;
    }
    match world.script {
        Script::Stall if number == 1 => run.release(AttemptVerdict::Succeeded),
        _ => run.order(Order::End(AttemptVerdict::Succeeded)),
    }
}

#[when("the first daemon begins to drain")]
async fn begins_to_drain(world: &mut JobWorld) {
    let jobs = world.first.as_ref().expect("it lives").jobs.clone();
    let deadline = Deadline::after(&world.clock(), DRAIN);
    world.draining = Some(tokio::spawn(async move { jobs.drain(&deadline).await }));
}

#[when("the time to drain is over")]
async fn the_drain_is_over(world: &mut JobWorld) {
    world.clock.advance(DRAIN);
}

#[then("the drain comes to its end")]
async fn the_drain_ends(world: &mut JobWorld) {
    let draining = world.draining.take().expect("it drains");
    within("it is drained", draining).await.unwrap();
    assert_eq!(world.board.shown().busy, 0);
}

#[then("the first daemon is refused")]
async fn the_first_is_refused(world: &mut JobWorld) {
    let first = &world.first.as_ref().expect("it lives").jobs;
    if world.is_ours() {
        counted(first, |counts| counts.fenced == 1).await;
    }
}

#[then("the first handler is told to stop")]
async fn the_first_is_told(world: &mut JobWorld) {
    let run = world.board.run(world.id(), 1).await;
    let told = || async { run.scope.is_cancelled().then_some(()) };
    if world.is_ours() {
        until("it is told to stop", told).await;
    }
}

#[then(expr = "it runs as attempt {int}")]
async fn it_runs_as(world: &mut JobWorld, number: u32) {
    let job = world.now().await;
    assert!(runs_as(&job, number), "{:?}", job.record);
}

#[then(expr = "it was run {int} times")]
async fn it_was_run(world: &mut JobWorld, times: usize) {
    assert_eq!(world.board.runs_of(world.id()).len(), times);
}

#[then("it is cancelled")]
async fn it_is_cancelled(world: &mut JobWorld) {
    in_state(world.jobs(), world.id(), JobState::Cancelled).await;
}

#[then("it has succeeded")]
async fn it_has_succeeded(world: &mut JobWorld) {
    assert_eq!(name(&world.now().await), JobState::Succeeded);
}

#[then("it has failed")]
async fn it_has_failed(world: &mut JobWorld) {
    assert_eq!(name(&world.now().await), JobState::Failed);
}

#[then(expr = "it comes to be {word}")]
async fn it_comes_to_be(world: &mut JobWorld, state: String) {
    if state == "running" {
        // Once more, that is, and elsewhere.
        return the_other_has_it(world).await;
    }
    world.comes_to(&state, is_in(&state)).await;
}

#[then("it has succeeded on the other daemon")]
async fn it_has_succeeded_there(world: &mut JobWorld) {
    let job = world.now().await;
    let State::Succeeded { ending } = &job.record.state else {
        panic!("it has not succeeded: {:?}", job.record)
    };
    assert_eq!((ending.attempt, &*ending.text), (2, "Succeeded on the other"));
}

#[then("the wish to cancel it stands")]
async fn the_wish_stands(world: &mut JobWorld) {
    assert!(world.now().await.record.cancel.is_some());
}

#[then(expr = "its history is {string}")]
async fn its_history_is(world: &mut JobWorld, words: String) {
    assert_eq!(history(world.jobs(), world.id()).await.join(", "), words);
}

#[then(expr = "its history begins with {string}")]
async fn its_history_begins_with(world: &mut JobWorld, words: String) {
    let history = history(world.jobs(), world.id()).await.join(", ");
    assert!(history.starts_with(&words), "{history}");
}
