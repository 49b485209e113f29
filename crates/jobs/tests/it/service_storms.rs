//! Many at once, with real threads: sums are exact, and every job ends once.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use jobs::{AttemptVerdict, ChangeError, Lane};
use protocol::{JobIfInterrupted, JobState};

use crate::{
    subjects::{
        board::{Order, Script},
        daemon::{by_a_test, counted, ended, get, history, job_with, submit, terminal},
    },
    support::Stage,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_finish_and_time_out_in_the_same_instant_give_one_end() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let mut outcomes = BTreeMap::new();
    for round in 0..300 {
        let limited = job_with("a job", Script::Ordered, |facts| {
            facts.time_limit_ms = Some(1_000);
            facts.retry.max_retries = 0;
        });
        let id = submit(jobs, limited).await;
        let run = stage.board.run(id, 1).await;
        let last_word = match round % 3 {
            0 => Order::End(AttemptVerdict::Succeeded),
            1 => Order::End(AttemptVerdict::Failed),
            _ => Order::ObeyStop,
        };
        let cancelling = {
            let jobs = jobs.clone();
            tokio::spawn(async move { jobs.cancel(id, by_a_test()).await })
        };
        let passing = {
            let clock = stage.manual.clone().unwrap();
            tokio::task::spawn_blocking(move || clock.advance(Duration::from_secs(1)))
        };
        run.order(last_word);
        let cancelled = cancelling.await.unwrap();
        passing.await.unwrap();
        let job = ended(jobs, id).await;
        let words = history(jobs, id).await;
        assert_eq!(terminal(&words), 1, "{words:?}");
        assert_eq!(words.last(), Some(&job.record.state.name().as_str()), "{words:?}");
        // A wish that was taken stands in the job; one that was not came after the end.
        match cancelled {
            Ok(_) => assert!(job.record.cancel.is_some()),
            Err(ChangeError::Ended { job: ended }) => assert_eq!(*ended, job),
            Err(error) => panic!("{error}"),
        }
        // Whatever comes now changes nothing.
        jobs.cancel(id, by_a_test()).await.unwrap_err();
        assert_eq!(get(jobs, id).await, job);
        *outcomes.entry(job.record.state.name().as_str()).or_insert(0) += 1;
    }
    let all: i32 = outcomes.values().sum();
    assert_eq!(all, 300);
    counted(jobs, |counts| {
        let ended = counts.succeeded + counts.failed + counts.cancelled;
        (ended, counts.claimed, counts.fenced) == (300, 300, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_submissions_is_done_once_each_within_the_limits() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(8).await;
    let submitters = (0..8).map(|submitter| {
        let jobs = daemon.jobs.clone();
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for number in 0..40 {
                let new = job_with(&format!("{submitter}/{number}"), Script::Succeed, |facts| {
                    facts.if_interrupted = JobIfInterrupted::Repeat;
                    facts.lane = (number % 2 == 0).then(|| Lane {
                        name: "narrow".into(),
                        limit: NonZeroU16::new(2).unwrap(),
                    });
                });
                ids.push(submit(&jobs, new).await);
            }
            ids
        })
    });
    let mut ids = Vec::new();
    for submitter in submitters.collect::<Vec<_>>() {
        ids.extend(submitter.await.unwrap());
    }
    for id in &ids {
        assert_eq!(
            ended(&daemon.jobs, *id).await.record.state.name(),
            JobState::Succeeded
        );
    }
    let shown = stage.board.shown();
    assert_eq!(shown.runs.len(), 320);
    assert!(shown.peak <= 8, "{}", shown.peak);
    counted(&daemon.jobs, |counts| {
        let open = (counts.lost_claims, counts.queued, counts.running);
        (counts.claimed, counts.succeeded, open) == (320, 320, (0, 0, 0))
    })
    .await;
}
