//! Which job runs when: priorities, ageing, delays, lanes, dependencies, and how many at once.

use std::{num::NonZeroU16, time::Duration};

use eventlog::{Fault, Faults};
use jobs::{AGEING_MS, AttemptVerdict, FailReason, Jobs, Lane, ListQuery, Pool, Priority, State, WaitingFor};
use protocol::{JobId, JobIfInterrupted, JobState};

use crate::{
    subjects::{
        board::{Board, Order, Script},
        daemon::{by_a_test, counted, ended, get, history, in_state, job, job_with, submit, until, within},
    },
    support::Stage,
};

/// The titles of what was run, in the order of the starts.
fn titles(board: &Board) -> Vec<String> {
    board.shown().runs.iter().map(|run| run.title.clone()).collect()
}

fn lane(name: &str, limit: u16) -> Lane {
    Lane {
        name: name.into(),
        limit: NonZeroU16::new(limit).unwrap(),
    }
}

async fn queued(jobs: &Jobs, count: u64) {
    counted(jobs, |counts| counts.queued == count).await;
}

#[tokio::test]
async fn the_first_is_who_matters_most_and_among_equals_who_came_first() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let first = submit(jobs, job("first", Script::Ordered)).await;
    let run = stage.board.run(first, 1).await;
    let mut last = first;
    for (title, priority) in [
        ("usual 1", 0),
        ("last", -10),
        ("usual 2", 0),
        ("important", 10),
        ("better", 1),
    ] {
        let new = job_with(title, Script::Succeed, |facts| {
            facts.priority = Priority::new(priority).unwrap();
        });
        let id = submit(jobs, new).await;
        if priority == -10 {
            last = id;
        }
    }
    queued(jobs, 5).await;
    run.order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, last).await;
    assert_eq!(
        titles(&stage.board),
        ["first", "important", "better", "usual 1", "usual 2", "last"]
    );
}

#[tokio::test]
async fn waiting_counts_so_that_nobody_waits_for_ever() {
    let step = Duration::from_millis(AGEING_MS);
    let second = Duration::from_secs(1);
    for (lead, expected) in [
        (step - second, ["first", "important", "old"]),
        (step + second, ["first", "old", "important"]),
    ] {
        let stage = Stage::by_hand();
        let daemon = stage.alone(1).await;
        let jobs = &daemon.jobs;
        let first = submit(jobs, job("first", Script::Ordered)).await;
        let run = stage.board.run(first, 1).await;
        let old = submit(jobs, job("old", Script::Succeed)).await;
        stage.pass(lead);
        let important = job_with("important", Script::Succeed, |facts| {
            facts.priority = Priority::new(1).unwrap();
        });
        let important = submit(jobs, important).await;
        queued(jobs, 2).await;
        run.order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, old).await;
        ended(jobs, important).await;
        assert_eq!(titles(&stage.board), expected, "with a lead of {lead:?}");
    }
}

#[tokio::test]
async fn a_delayed_job_starts_when_its_time_has_come_and_not_before() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(4).await;
    let jobs = &daemon.jobs;
    let mut new = job("delayed", Script::Succeed);
    new.delay = Duration::from_secs(60);
    let delayed = submit(jobs, new).await;
    let State::Queued {
        not_before: Some(moment),
        ..
    } = get(jobs, delayed).await.record.state
    else {
        panic!("it waits for a time")
    };
    assert_eq!(jobs.waiting_for(delayed).await, Some(WaitingFor::Time(moment)));
    stage.pass(Duration::from_secs(59));
    // What came later and need not wait is done, and the delayed one is still there.
    let other = submit(jobs, job("other", Script::Succeed)).await;
    ended(jobs, other).await;
    assert_eq!(history(jobs, delayed).await, ["submitted"]);
    stage.pass(Duration::from_secs(1));
    ended(jobs, delayed).await;
    assert_eq!(titles(&stage.board), ["other", "delayed"]);
}

#[tokio::test]
async fn a_lane_never_runs_more_than_its_limit_and_holds_up_nobody_else() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(8).await;
    let jobs = &daemon.jobs;
    let in_lane = |title: &str| {
        job_with(title, Script::Ordered, |facts| {
            facts.lane = Some(lane("cargo", 2))
        })
    };
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(submit(jobs, in_lane(&format!("lane {number}"))).await);
    }
    stage.board.until("two run", |shown| shown.busy == 2).await;
    let waiting = ids.iter().copied().find(|id| stage.board.runs_of(*id).is_empty());
    assert_eq!(jobs.waiting_for(waiting.unwrap()).await, Some(WaitingFor::Lane));
    let outside = submit(jobs, job("outside", Script::Succeed)).await;
    ended(jobs, outside).await;
    for done in 0..6 {
        let is_under_way = |id: &JobId| {
            let runs = stage.board.runs_of(*id);
            !runs.is_empty() && !ids[..done].contains(id)
        };
        // They are ended in the order in which they came, which is also that of their starts.
        until("the next one runs", || async {
            is_under_way(&ids[done]).then_some(())
        })
        .await;
        stage
            .board
            .run(ids[done], 1)
            .await
            .order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, ids[done]).await;
    }
    // Two of the lane, and the one outside.
    assert!(stage.board.shown().peak <= 3, "{:?}", stage.board.shown().peak);
    counted(jobs, |counts| counts.succeeded == 7).await;
}

#[tokio::test]
async fn a_job_starts_when_everything_has_succeeded_that_it_waits_for() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let jobs = &daemon.jobs;
    let before = submit(jobs, job("ended before", Script::Succeed)).await;
    ended(jobs, before).await;
    let one = submit(jobs, job("one", Script::Ordered)).await;
    let two = submit(jobs, job("two", Script::Ordered)).await;
    let after = job_with("after", Script::Succeed, |facts| {
        facts.after = vec![before, one, two]
    });
    let after = submit(jobs, after).await;
    let next = job_with("after after", Script::Succeed, |facts| facts.after = vec![after]);
    let next = submit(jobs, next).await;
    let waits_for = |ids: Vec<JobId>| async move {
        (jobs.waiting_for(after).await == Some(WaitingFor::Jobs(ids))).then_some(())
    };
    let mut both = vec![one, two];
    both.sort();
    until("the ended one counts", || waits_for(both.clone())).await;
    stage
        .board
        .run(one, 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    until("the first one counts", || waits_for(vec![two])).await;
    assert_eq!(history(jobs, after).await, ["submitted"]);
    stage
        .board
        .run(two, 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, next).await;
    assert_eq!(titles(&stage.board)[3..], ["after", "after after"]);
}

#[tokio::test]
async fn a_job_fails_when_what_it_waits_for_does_not_succeed() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(4).await;
    let jobs = &daemon.jobs;
    let after = |id: JobId| job_with("after", Script::Succeed, |facts| facts.after = vec![id]);

    let failing = submit(jobs, job("failing", Script::Ordered)).await;
    let after_failing = submit(jobs, after(failing)).await;
    let chained = submit(jobs, after(after_failing)).await;
    stage
        .board
        .run(failing, 1)
        .await
        .order(Order::End(AttemptVerdict::Failed));
    ended(jobs, failing).await;
    let after_failed_before = submit(jobs, after(failing)).await;

    let running = submit(jobs, job("running", Script::UntilStopped)).await;
    stage.board.run(running, 1).await;
    let after_cancelled = submit(jobs, after(running)).await;
    jobs.cancel(running, by_a_test()).await.unwrap();

    let mut waiting = job("waiting", Script::Succeed);
    waiting.delay = Duration::from_secs(3600);
    let waiting = submit(jobs, waiting).await;
    let after_cancelled_queued = submit(jobs, after(waiting)).await;
    jobs.cancel(waiting, by_a_test()).await.unwrap();

    for id in [
        after_failing,
        chained,
        after_failed_before,
        after_cancelled,
        after_cancelled_queued,
    ] {
        let job = ended(jobs, id).await;
        let State::Failed { reason, .. } = job.record.state else {
            panic!("{:?}", job.record.state)
        };
        assert_eq!(reason, FailReason::DependencyFailed);
        assert_eq!(history(jobs, id).await, ["submitted", "failed"]);
    }
    assert!(titles(&stage.board).iter().all(|title| title != "after"));
}

#[tokio::test]
async fn how_many_run_at_once_can_be_changed_while_they_run() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(0).await;
    let jobs = &daemon.jobs;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(submit(jobs, job(&format!("{number}"), Script::Ordered)).await);
    }
    queued(jobs, 5).await;
    assert_eq!(
        jobs.waiting_for(ids[0]).await,
        Some(WaitingFor::Worker { running: 0, limit: 0 })
    );
    assert_eq!(stage.board.shown().runs.len(), 0);

    jobs.set_max_workers(3).await;
    stage.board.until("three run", |shown| shown.busy == 3).await;
    jobs.set_max_workers(1).await;
    for id in &ids[..2] {
        stage
            .board
            .run(*id, 1)
            .await
            .order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, *id).await;
    }
    // One still runs, and that is as many as may.
    assert_eq!(
        jobs.waiting_for(ids[3]).await,
        Some(WaitingFor::Worker { running: 1, limit: 1 })
    );
    jobs.set_max_workers(0).await;
    stage
        .board
        .run(ids[2], 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, ids[2]).await;
    assert_eq!(
        jobs.waiting_for(ids[3]).await,
        Some(WaitingFor::Worker { running: 0, limit: 0 })
    );
    assert_eq!(stage.board.shown().runs.len(), 3);

    jobs.set_max_workers(4).await;
    for id in &ids[3..] {
        stage
            .board
            .run(*id, 1)
            .await
            .order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, *id).await;
    }
    counted(jobs, |counts| (counts.queued, counts.max_workers) == (0, 4)).await;
}

/// Makes the service believe that jobs are short, so that it claims them before their turn; then one that is long has
/// others behind it that are claimed and have not begun.
async fn claimed_ahead(jobs: &Jobs, board: &Board) -> (JobId, Vec<JobId>) {
    let repeatable = |title: &str, script| {
        job_with(title, script, |facts| {
            facts.if_interrupted = JobIfInterrupted::Repeat
        })
    };
    let short = submit(jobs, repeatable("short", Script::Succeed)).await;
    ended(jobs, short).await;
    jobs.set_max_workers(0).await;
    let long = submit(jobs, repeatable("long", Script::Ordered)).await;
    let mut ahead = Vec::new();
    for number in 0..3 {
        ahead.push(submit(jobs, repeatable(&format!("ahead {number}"), Script::Succeed)).await);
    }
    queued(jobs, 4).await;
    jobs.set_max_workers(1).await;
    board.run(long, 1).await;
    for id in &ahead {
        in_state(jobs, *id, JobState::Running).await;
    }
    (long, ahead)
}

#[tokio::test]
async fn what_was_claimed_before_its_turn_is_cancelled_at_once() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let (long, ahead) = claimed_ahead(jobs, &stage.board).await;
    jobs.cancel(ahead[1], by_a_test()).await.unwrap();
    let cancelled = ended(jobs, ahead[1]).await;
    assert_eq!(cancelled.record.state.name(), JobState::Cancelled);
    assert_eq!(
        history(jobs, ahead[1]).await,
        [
            "submitted",
            "claimed",
            "cancel_requested",
            "released",
            "cancelled"
        ]
    );
    stage
        .board
        .run(long, 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, ahead[0]).await;
    ended(jobs, ahead[2]).await;
    assert_eq!(titles(&stage.board), ["short", "long", "ahead 0", "ahead 2"]);
}

#[tokio::test]
async fn what_was_claimed_before_its_turn_is_given_back_when_nothing_more_may_start() {
    enum How {
        NoWorkers,
        Close,
    }
    for how in [How::NoWorkers, How::Close] {
        let stage = Stage::by_hand();
        let daemon = stage.alone(1).await;
        let jobs = &daemon.jobs;
        let (long, ahead) = claimed_ahead(jobs, &stage.board).await;
        match how {
            How::NoWorkers => jobs.set_max_workers(0).await,
            How::Close => jobs.close().await,
        }
        for id in &ahead {
            in_state(jobs, *id, JobState::Queued).await;
            assert_eq!(history(jobs, *id).await, ["submitted", "claimed", "released"]);
        }
        stage
            .board
            .run(long, 1)
            .await
            .order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, long).await;
        assert_eq!(titles(&stage.board), ["short", "long"]);
    }
}

#[tokio::test]
async fn a_crash_puts_what_was_claimed_before_its_turn_back() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let (long, ahead) = claimed_ahead(&daemon.jobs, &stage.board).await;
    daemon.kill().await;
    let next = stage.alone(1).await;
    let jobs = &next.jobs;
    stage
        .board
        .run(long, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    within("all are done", async {
        for id in ahead.iter().chain([&long]) {
            let job = ended(jobs, *id).await;
            assert_eq!(job.record.state.name(), JobState::Succeeded);
            assert_eq!(
                history(jobs, *id).await,
                ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
            );
        }
    })
    .await;
    // All were submitted in the same instant, so any of them may be the first.
    let mut after = titles(&stage.board)[2..].to_vec();
    after.sort();
    assert_eq!(after, ["ahead 0", "ahead 1", "ahead 2", "long"]);
}

#[tokio::test]
async fn what_somebody_works_with_takes_no_worker_and_waits_for_none() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let foreground = |title: &str| job_with(title, Script::Ordered, |facts| facts.pool = Pool::Foreground);
    let agents = [
        submit(jobs, foreground("first agent")).await,
        submit(jobs, foreground("second agent")).await,
    ];
    stage.board.until("both run", |shown| shown.busy == 2).await;
    // Each agent waits for a job, for which there is a worker.
    for _ in &agents {
        let asked = submit(jobs, job("asked for", Script::Succeed)).await;
        ended(jobs, asked).await;
    }
    // The log has the end of a job before it is counted.
    until("no worker is taken", || async {
        let counts = jobs.counts();
        ((counts.running, counts.foreground) == (0, 2)).then_some(())
    })
    .await;
    for agent in agents {
        stage
            .board
            .run(agent, 1)
            .await
            .order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, agent).await;
    }
}

#[tokio::test]
async fn a_job_that_deals_with_an_end_runs_after_any_end_and_survives_a_restart() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let followed = |title: &str, script: Script| {
        let mut new = job(title, script);
        new.then = Some(Box::new(job_with("deal with it", Script::Succeed, |facts| {
            facts.pool = Pool::Foreground;
        })));
        new
    };
    for script in [Script::Succeed, Script::Fail] {
        let id = submit(&daemon.jobs, followed("followed", script)).await;
        let follower = ended(&daemon.jobs, id).await.record.facts.followed_by.unwrap();
        let dealt = ended(&daemon.jobs, follower).await;
        assert_eq!(dealt.record.state.name(), JobState::Succeeded);
        assert_eq!(dealt.record.facts.after, [id]);
    }
    // One that was cancelled before it began has an end as well.
    daemon.jobs.set_max_workers(0).await;
    let id = submit(&daemon.jobs, followed("cancelled", Script::Succeed)).await;
    let follower = get(&daemon.jobs, id).await.record.facts.followed_by.unwrap();
    // The follower is no job of its own.
    until("the job is counted", || async {
        (daemon.jobs.counts().queued == 1).then_some(())
    })
    .await;
    let listed = daemon.jobs.list(ListQuery {
        state: None,
        before: None,
        limit: 10,
    });
    assert!(listed.await.unwrap().iter().all(|job| job.id != follower));
    daemon.jobs.cancel(id, by_a_test()).await.unwrap();
    ended(&daemon.jobs, follower).await;
    // Its daemon dies while it runs: the next one deals with that.
    daemon.jobs.set_max_workers(1).await;
    let id = submit(&daemon.jobs, followed("interrupted", Script::UntilStopped)).await;
    let follower = get(&daemon.jobs, id).await.record.facts.followed_by.unwrap();
    stage.board.run(id, 1).await;
    daemon.kill().await;
    let daemon = stage.alone(1).await;
    assert_eq!(
        ended(&daemon.jobs, id).await.record.state.name(),
        JobState::Failed
    );
    ended(&daemon.jobs, follower).await;
    // What is done again is dealt with again.
    let again = daemon.jobs.retry(id, JobId::generate(), "a test").await.unwrap();
    let another = again.record.facts.followed_by.unwrap();
    assert_ne!(another, follower);
    daemon.jobs.cancel(again.id, by_a_test()).await.unwrap();
    ended(&daemon.jobs, another).await;
}

#[tokio::test]
async fn a_list_of_jobs_that_have_not_begun_reads_nothing_of_each() {
    let mut stage = Stage::in_real_time();
    let faults = Faults::default();
    stage.log = stage.log.with_faults(&faults);
    let daemon = stage.alone(0).await;
    for _ in 0..50 {
        submit(&daemon.jobs, job("waits", Script::Succeed)).await;
    }
    queued(&daemon.jobs, 50).await;
    let found = daemon
        .jobs
        .list(ListQuery {
            state: None,
            before: None,
            limit: 50,
        })
        .await
        .unwrap();
    // From here on, whatever reads a head fails.
    faults.plan(Fault::Head, "job", 0..usize::MAX);
    let seen = daemon.jobs.seen_now(&found).await.unwrap();
    let expected = Some(WaitingFor::Worker { running: 0, limit: 0 });
    assert_eq!(seen.len(), 50);
    assert!(seen.iter().all(|seen| seen.waiting == expected), "{seen:?}");
    assert_eq!(faults.happened(Fault::Head), 0);
}
