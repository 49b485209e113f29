//! Callers that go away in the middle of a call: what has taken effect is followed by what it promises.

use std::{future::poll_fn, pin::pin, task::Poll};

use jobs::NewJob;
use protocol::JobState;

use crate::{
    subjects::{
        board::Script,
        daemon::{by_a_test, ended, job_with, submit},
    },
    support::Stage,
};

/// More steps than any call here takes.
const STEPS: usize = 16;

/// Lets a call take so many steps and goes away then, whatever has come of it. Returns whether it was done before.
async fn leave_after<T>(steps: usize, call: impl Future<Output = T>) -> bool {
    let mut call = pin!(call);
    let mut left = steps;
    poll_fn(|context| match left {
        0 => Poll::Ready(false),
        _ => {
            left -= 1;
            call.as_mut().poll(context).map(|_| true)
        }
    })
    .await
}

fn keyed(key: String, script: Script) -> NewJob {
    job_with("left alone", script, |facts| facts.idempotency_key = Some(key))
}

#[tokio::test]
async fn a_job_whose_sender_goes_away_runs_all_the_same() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let mut stayed = 0;
    for steps in 1..STEPS {
        let new = || keyed(format!("after {steps} steps"), Script::Succeed);
        stayed += usize::from(leave_after(steps, daemon.jobs.submit(new())).await);
        // Asked again it is the same one, and it runs.
        let id = daemon.jobs.submit(new()).await.unwrap().job().id;
        let job = ended(&daemon.jobs, id).await;
        assert_eq!(
            job.record.state.name(),
            JobState::Succeeded,
            "left after {steps} steps"
        );
    }
    assert!(stayed > 0, "no call was ever done within {STEPS} steps");
    assert_eq!(stage.board.shown().runs.len(), STEPS - 1);
}

#[tokio::test]
async fn a_job_is_stopped_though_nobody_waits_for_the_cancellation() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let mut stayed = 0;
    for steps in 1..STEPS {
        let id = submit(
            &daemon.jobs,
            keyed(format!("to stop {steps}"), Script::UntilStopped),
        )
        .await;
        let cancelling = daemon.jobs.cancel(id, by_a_test());
        stayed += usize::from(leave_after(steps, cancelling).await);
        let job = ended(&daemon.jobs, id).await;
        assert_eq!(
            job.record.state.name(),
            JobState::Cancelled,
            "left after {steps} steps"
        );
    }
    assert!(stayed > 0, "no call was ever done within {STEPS} steps");
}
