//! What is left when a daemon ends, politely or not, and what the next one makes of it.

use std::time::Duration;

use jobs::{AttemptVerdict, FailReason, NewJob, State, SubmitError};
use kernel::{Deadline, SystemClock};
use protocol::{JobId, JobIfInterrupted, JobState};

use crate::{
    subjects::{
        board::{Order, Script},
        daemon::{
            Daemon, by_a_test, ended, get, history, job, job_with, rival_cancel, stream, submit, until,
            within,
        },
    },
    support::Stage,
};

fn repeatable(title: &str, script: Script) -> NewJob {
    job_with(title, script, |facts| {
        facts.if_interrupted = JobIfInterrupted::Repeat
    })
}

fn now() -> Deadline {
    Deadline::after(&SystemClock::shared(), Duration::ZERO)
}

fn in_time() -> Deadline {
    Deadline::after(&SystemClock::shared(), Duration::from_secs(600))
}

async fn drain(daemon: &Daemon, deadline: Deadline) {
    within("it is drained", daemon.jobs.drain(&deadline)).await;
}

#[tokio::test]
async fn after_a_crash_nothing_is_said_to_run_that_does_not() {
    let mut stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let jobs = &daemon.jobs;
    let once = submit(jobs, job("once", Script::Ordered)).await;
    let again = submit(jobs, repeatable("again", Script::Ordered)).await;
    let cancelled = submit(jobs, repeatable("cancelled", Script::Ordered)).await;
    let done = submit(jobs, job("done", Script::Succeed)).await;
    for id in [once, again, cancelled] {
        stage.board.run(id, 1).await;
    }
    ended(jobs, done).await;
    let waiting = submit(
        jobs,
        job_with("waiting", Script::Succeed, |facts| facts.after = vec![again]),
    )
    .await;
    jobs.cancel(cancelled, by_a_test()).await.unwrap();
    daemon.kill().await;
    assert_eq!(stage.board.shown().busy, 0);
    stage.reopen();

    // With no worker nothing is claimed, so this is what the start itself has made of it.
    let daemon = stage.alone(0).await;
    let jobs = &daemon.jobs;
    let expected: [(JobId, JobState, &[&str]); 5] = [
        (
            once,
            JobState::Failed,
            &["submitted", "claimed", "interrupted", "failed"],
        ),
        (again, JobState::Queued, &["submitted", "claimed", "interrupted"]),
        (
            cancelled,
            JobState::Cancelled,
            &[
                "submitted",
                "claimed",
                "cancel_requested",
                "interrupted",
                "cancelled",
            ],
        ),
        (done, JobState::Succeeded, &["submitted", "claimed", "succeeded"]),
        (waiting, JobState::Queued, &["submitted"]),
    ];
    for (id, state, words) in expected {
        assert_eq!(get(jobs, id).await.record.state.name(), state);
        assert_eq!(history(jobs, id).await, words);
    }
    let failed = get(jobs, once).await.record.state;
    assert!(
        matches!(
            failed,
            State::Failed {
                reason: FailReason::Interrupted,
                ..
            }
        ),
        "{failed:?}"
    );
    jobs.set_max_workers(1).await;
    stage
        .board
        .run(again, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    assert_eq!(
        ended(jobs, waiting).await.record.state.name(),
        JobState::Succeeded
    );
}

#[tokio::test]
async fn a_job_that_takes_its_daemon_down_is_given_up_in_the_end() {
    let stage = Stage::by_hand();
    let mut daemon = stage.alone(1).await;
    let id = submit(&daemon.jobs, repeatable("a job", Script::Ordered)).await;
    for run in 1..=11 {
        stage.pass(Duration::from_secs(60));
        stage.board.run(id, run).await;
        daemon.kill().await;
        daemon = stage.alone(1).await;
    }
    let job = get(&daemon.jobs, id).await;
    assert_eq!((job.record.attempts, job.record.interruptions), (11, 11));
    let state = job.record.state;
    assert!(
        matches!(
            state,
            State::Failed {
                reason: FailReason::Interrupted,
                ..
            }
        ),
        "{state:?}"
    );
}

#[tokio::test]
async fn a_drain_waits_for_what_runs_and_starts_nothing_more() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = daemon.jobs.clone();
    let running = submit(&jobs, job("running", Script::Ordered)).await;
    let run = stage.board.run(running, 1).await;
    let waiting = submit(&jobs, job("waiting", Script::Succeed)).await;
    let draining = {
        let jobs = jobs.clone();
        tokio::spawn(async move { jobs.drain(&in_time()).await })
    };
    within("it takes no more", async {
        while jobs.submit(job("late", Script::Succeed)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!draining.is_finished());
    run.order(Order::End(AttemptVerdict::Succeeded));
    within("it is drained", draining).await.unwrap();
    assert_eq!(get(&jobs, running).await.record.state.name(), JobState::Succeeded);
    assert_eq!(get(&jobs, waiting).await.record.state.name(), JobState::Queued);
    assert_eq!(stage.board.runs_of(waiting).len(), 0);
    let refused = jobs.submit(job("late", Script::Succeed)).await;
    assert!(matches!(refused, Err(SubmitError::Draining)), "{refused:?}");
}

#[tokio::test]
async fn what_is_not_done_in_time_is_stopped_and_given_back() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let jobs = &daemon.jobs;
    let once = submit(jobs, job("once", Script::UntilStopped)).await;
    let again = submit(jobs, repeatable("again", Script::UntilStopped)).await;
    let done = submit(jobs, job("done", Script::Ordered)).await;
    for id in [once, again, done] {
        stage.board.run(id, 1).await;
    }
    // This one has done its work when it is told to stop, and says so.
    let run = stage.board.run(done, 1).await;
    let finisher = tokio::spawn(async move {
        run.scope.wait().await;
        run.order(Order::End(AttemptVerdict::Succeeded));
    });
    drain(&daemon, now()).await;
    finisher.await.unwrap();
    assert_eq!(stage.board.shown().busy, 0);
    let expected: [(JobId, JobState, &[&str]); 3] = [
        (
            once,
            JobState::Failed,
            &["submitted", "claimed", "interrupted", "failed"],
        ),
        (again, JobState::Queued, &["submitted", "claimed", "interrupted"]),
        (done, JobState::Succeeded, &["submitted", "claimed", "succeeded"]),
    ];
    for (id, state, words) in expected {
        assert_eq!(get(jobs, id).await.record.state.name(), state);
        assert_eq!(history(jobs, id).await, words);
    }
    assert_eq!(jobs.counts().interrupted, 2);
}

#[tokio::test]
async fn a_drain_in_the_instant_of_a_claim_leaves_nothing_running() {
    // The claim is on its way, has landed, or has not begun: whichever it is, the drain comes to its end.
    for round in 0..60 {
        let stage = Stage::in_real_time();
        let daemon = stage.alone(2).await;
        let id = submit(&daemon.jobs, repeatable("a job", Script::UntilStopped)).await;
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        drain(&daemon, now()).await;
        assert_eq!(stage.board.shown().busy, 0, "in round {round}");
        let state = get(&daemon.jobs, id).await.record.state.name();
        assert_eq!(state, JobState::Queued, "in round {round}");
    }
}

#[tokio::test]
async fn what_runs_when_the_last_handle_is_dropped_is_written_down() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let id = submit(&daemon.jobs, job("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    // The first commit of the end is refused, and there must be somebody to make the second one.
    rival_cancel(&stage.log, &get(&daemon.jobs, id).await).await;
    let runtime = daemon.leave();
    run.order(Order::End(AttemptVerdict::Succeeded));
    until("its end is written", || async {
        let head = stage.log.head(&stream(id)).await.unwrap().unwrap().head;
        (&*head.status == "succeeded").then_some(())
    })
    .await;
    runtime.shutdown_background();
}
