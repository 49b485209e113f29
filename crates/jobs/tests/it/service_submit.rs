//! What is taken, what is not, what is done again, and what is forgotten.

use std::{collections::BTreeSet, num::NonZeroU16, sync::Arc, time::Duration};

use eventlog::{HeadsOrder, HeadsQuery};

use jobs::{
    AttemptVerdict, ChangeError, GcPolicy, Lane, NewJob, PAYLOAD_LIMIT_BYTES, SubmitError, Submitted,
};
use protocol::{JobId, JobState, JobsCollected};

use crate::{
    subjects::{
        board::{Order, Script},
        daemon::{by_a_test, counted, ended, get, history, job, job_with, submit},
    },
    support::Stage,
};

fn keyed(key: &str, title: &str) -> NewJob {
    job_with(title, Script::Succeed, |facts| {
        facts.idempotency_key = Some(key.to_owned());
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_submissions_with_one_key_one_is_taken() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let submissions = (0..64).map(|_| {
        let jobs = daemon.jobs.clone();
        tokio::spawn(async move { jobs.submit(keyed("a key", "once")).await })
    });
    let (mut new, mut all) = (0, BTreeSet::new());
    for submission in submissions.collect::<Vec<_>>() {
        let submitted = submission.await.unwrap().unwrap();
        all.insert(submitted.job().id);
        new += usize::from(matches!(submitted, Submitted::New(_)));
    }
    assert_eq!((new, all.len()), (1, 1));
    let id = *all.first().unwrap();
    ended(&daemon.jobs, id).await;
    assert_eq!(stage.board.shown().runs.len(), 1);
    // Also when it has ended, and whoever asks.
    let mut again = keyed("a key", "once");
    again.facts.submitted_by = "somebody else".to_owned();
    let again = daemon.jobs.submit(again).await.unwrap();
    assert!(
        matches!(&again, Submitted::Known(job) if job.id == id),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_key_is_not_taken_for_something_else() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(0).await;
    let first = submit(&daemon.jobs, keyed("a key", "one thing")).await;
    let mut other_payload = keyed("a key", "one thing");
    other_payload.payload = Script::Fail.payload();
    for other in [keyed("a key", "another thing"), other_payload] {
        let refused = daemon.jobs.submit(other).await;
        assert!(
            matches!(refused, Err(SubmitError::KeyReused { id }) if id == first),
            "{refused:?}"
        );
    }
    submit(&daemon.jobs, keyed("another key", "one thing")).await;
    counted(&daemon.jobs, |counts| counts.queued == 2).await;
}

#[tokio::test]
async fn what_cannot_be_is_not_taken() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(0).await;
    let nobody = JobId::generate();
    let lane = |name: &str| Lane {
        name: name.into(),
        limit: NonZeroU16::MIN,
    };
    let with = |change: fn(&mut NewJob)| {
        let mut new = job("a job", Script::Succeed);
        change(&mut new);
        new
    };
    let mut cases = vec![
        (with(|new| new.facts.title = "x".repeat(201)), "`title`"),
        (
            with(|new| new.payload = vec![b'x'; PAYLOAD_LIMIT_BYTES + 1]),
            "`command`",
        ),
        (with(|new| new.facts.retry.max_retries = 1_001), "`max_retries`"),
        (
            with(|new| new.facts.idempotency_key = Some(String::new())),
            "`idempotency_key`",
        ),
        (
            with(|new| new.facts.handler = "nobody".into()),
            "no handler `nobody`",
        ),
    ];
    for name in ["", "two\nlines", &"x".repeat(201)] {
        let mut new = job("a job", Script::Succeed);
        new.facts.lane = Some(lane(name));
        cases.push((new, "`lane`"));
    }
    let mut after = job("a job", Script::Succeed);
    after.facts.after = vec![nobody];
    cases.push((after, "to wait for"));
    let mut too_many = job("a job", Script::Succeed);
    too_many.facts.after = vec![nobody; 65];
    cases.push((too_many, "`after`"));
    for (new, expected) in cases {
        let title = format!("{:?}", new.facts);
        let error = daemon.jobs.submit(new).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error} for {title}");
    }
    daemon.jobs.close().await;
    let refused = daemon.jobs.submit(job("late", Script::Succeed)).await;
    assert!(matches!(refused, Err(SubmitError::Draining)), "{refused:?}");
    assert_eq!(daemon.jobs.counts().queued, 0);
}

#[tokio::test]
async fn a_job_is_done_again_as_a_new_one() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(2).await;
    let jobs = &daemon.jobs;
    let first = submit(jobs, keyed("a key", "again")).await;
    let before = ended(jobs, first).await;
    let again = jobs.retry(first, JobId::generate(), "somebody").await.unwrap();
    let again = ended(jobs, again.id).await;
    assert_eq!(get(jobs, first).await, before);
    let mut expected = before.record.facts.clone();
    expected.retry_of = Some(first);
    expected.idempotency_key = None;
    expected.submitted_by = "somebody".to_owned();
    assert_eq!(again.record.facts, expected);
    assert_eq!(
        jobs.payload(again.id).await.unwrap(),
        jobs.payload(first).await.unwrap()
    );

    let running = submit(jobs, job("running", Script::UntilStopped)).await;
    let refused = jobs.retry(running, JobId::generate(), "somebody").await;
    assert!(
        matches!(refused, Err(ChangeError::NotEnded { .. })),
        "{refused:?}"
    );
    jobs.cancel(running, by_a_test()).await.unwrap();
    ended(jobs, running).await;
    let nobody = jobs.retry(JobId::generate(), JobId::generate(), "somebody").await;
    assert!(matches!(nobody, Err(ChangeError::NotFound { .. })), "{nobody:?}");
}

#[tokio::test]
async fn only_what_has_ended_and_nobody_waits_for_is_forgotten() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let old = submit(jobs, keyed("a key", "old")).await;
    ended(jobs, old).await;
    let waited_for = submit(jobs, job("waited for", Script::Succeed)).await;
    ended(jobs, waited_for).await;
    stage.pass(Duration::from_secs(3600));
    let young = submit(jobs, job("young", Script::Succeed)).await;
    ended(jobs, young).await;
    let running = submit(jobs, job("running", Script::Ordered)).await;
    let run = stage.board.run(running, 1).await;
    let waiting = job_with("waiting", Script::Succeed, |facts| {
        facts.after = vec![waited_for, running];
    });
    let waiting = submit(jobs, waiting).await;
    let policy = |older_than: u64, keep_newest: u64| GcPolicy {
        older_than: Duration::from_secs(older_than),
        output_budget_bytes: None,
        keep_newest,
    };
    let nothing = JobsCollected::default();
    assert_eq!(jobs.collect(policy(0, 3)).await.unwrap(), nothing);
    assert_eq!(jobs.collect(policy(7200, 0)).await.unwrap(), nothing);
    let collected = jobs.collect(policy(60, 0)).await.unwrap();
    // What it waits for has succeeded, and is kept all the same: the next daemon asks for it again.
    let expected = JobsCollected {
        jobs: 1,
        output_bytes: 0,
        in_use: 1,
    };
    assert_eq!(collected, expected);
    assert_eq!(jobs.get(old).await.unwrap(), None);
    for id in [young, running, waiting, waited_for] {
        assert!(jobs.get(id).await.unwrap().is_some());
    }
    // The key is free again.
    let next = submit(jobs, keyed("a key", "something else")).await;
    run.order(Order::End(AttemptVerdict::Succeeded));
    for id in [waiting, next] {
        assert_eq!(ended(jobs, id).await.record.state.name(), JobState::Succeeded);
    }
    assert_eq!(history(jobs, old).await, [""; 0]);
    let everything = jobs.collect(policy(0, 0)).await.unwrap();
    assert_eq!((everything.jobs, everything.in_use), (5, 0));
}

#[tokio::test]
async fn idle_lanes_are_forgotten_and_work_again_afterwards() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(2).await;
    let jobs = &daemon.jobs;
    let in_lane = |title: &str, name: &str, script| {
        let name: Arc<str> = Arc::from(name);
        let limit = NonZeroU16::MIN;
        job_with(title, script, |facts| facts.lane = Some(Lane { name, limit }))
    };
    for number in 0..5 {
        let id = submit(jobs, in_lane("idle", &format!("lane {number}"), Script::Succeed)).await;
        ended(jobs, id).await;
    }
    let busy = submit(jobs, in_lane("busy", "busy", Script::Ordered)).await;
    let run = stage.board.run(busy, 1).await;
    let none = GcPolicy {
        older_than: Duration::from_secs(7200),
        output_budget_bytes: None,
        keep_newest: 0,
    };
    jobs.collect(none).await.unwrap();
    let left = stage.log.heads(HeadsQuery {
        kind: "job-lane".into(),
        status: None,
        order: HeadsOrder::OldestFirst,
        after: None,
        limit: 100,
    });
    let left: Vec<String> = left
        .await
        .unwrap()
        .iter()
        .map(|head| head.stream.to_string())
        .collect();
    assert_eq!(left, ["job-lane/busy"]);
    // This daemon still knows one of them by its old version.
    let again = submit(jobs, in_lane("again", "lane 3", Script::Succeed)).await;
    assert_eq!(ended(jobs, again).await.record.state.name(), JobState::Succeeded);
    run.order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, busy).await;
}
