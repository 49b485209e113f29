//! Several daemons on one log: each job is run once per claim, and who is given up is fenced.

use std::{num::NonZeroU16, time::Duration};

use eventlog::{Fault, Faults, LeaseError};
use jobs::{
    AttemptVerdict, FailReason, GcPolicy, Jobs, Lane, NewJob, Priority, Sharing, State, WaitingFor, Worker,
};
use protocol::{JobId, JobIfInterrupted, JobState};

use crate::{
    subjects::{
        board::{Board, Order, Script},
        daemon::{
            Daemon, LEASE, Setting, attempt, by_a_test, counted, ended, get, history, in_state, job,
            job_with, stream, submit, until,
        },
    },
    support::Stage,
};

/// Longer than it takes until a daemon looks at what the others do, and shorter than a lease.
const A_LOOK: Duration = Duration::from_secs(6);

fn repeatable(title: &str, script: Script) -> NewJob {
    job_with(title, script, |facts| {
        facts.if_interrupted = JobIfInterrupted::Repeat
    })
}

/// Lets time pass, second by second, until there is an answer. Between two of them there is so much real time that
/// nobody loses a lease who is only slow.
async fn passing<T, F: Future<Output = Option<T>>>(stage: &Stage, what: &str, look: impl Fn() -> F) -> T {
    for _ in 0..100 {
        for _ in 0..100 {
            if let Some(answer) = look().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.pass(Duration::from_secs(1));
    }
    panic!("{what}: this has not happened")
}

async fn in_state_by_and_by(stage: &Stage, jobs: &Jobs, id: JobId, state: JobState) {
    let what = format!("the job is {}", state.as_str());
    passing(stage, &what, || async {
        (get(jobs, id).await.record.state.name() == state).then_some(())
    })
    .await;
}

async fn run_by_and_by(stage: &Stage, board: &Board, id: JobId, number: usize) {
    passing(stage, "it runs", || async {
        (board.runs_of(id).len() >= number).then_some(())
    })
    .await;
}

#[tokio::test]
async fn two_that_claim_at_once_run_it_once() {
    let mut lost = 0;
    for round in 0..20 {
        let stage = Stage::by_hand();
        let one = stage.sharing("one", 1).await;
        let mut delayed = job("a job", Script::Ordered);
        delayed.delay = Duration::from_secs(1);
        let id = submit(&one.jobs, delayed).await;
        let other = stage.sharing("other", 1).await;
        for jobs in [&one.jobs, &other.jobs] {
            until("it is known", || async {
                (jobs.counts().queued == 1).then_some(())
            })
            .await;
        }
        stage.pass(Duration::from_secs(1));
        let run = stage.board.run(id, 1).await;
        let counts = || (one.jobs.counts(), other.jobs.counts());
        // The second one finds it claimed when it tries, sometimes twice, or hears of it before it does.
        until("both know that it is claimed", || async {
            let (one, other) = counts();
            (one.queued + other.queued == 0).then_some(())
        })
        .await;
        run.order(Order::End(AttemptVerdict::Succeeded));
        ended(&one.jobs, id).await;
        assert_eq!(stage.board.shown().runs.len(), 1, "in round {round}");
        assert_eq!(
            history(&one.jobs, id).await,
            ["submitted", "claimed", "succeeded"]
        );
        let (one, other) = counts();
        assert_eq!((one.claimed + other.claimed, one.queued + other.queued), (1, 0));
        lost += one.lost_claims + other.lost_claims;
    }
    assert!(lost > 0, "they were never there at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_is_exact_over_two_daemons_in_a_storm() {
    let stage = Stage::in_real_time();
    let one = stage.sharing("one", 4).await;
    let other = stage.sharing("other", 4).await;
    let mut ids = Vec::new();
    for number in 0..60 {
        let new = job_with(&format!("{number}"), Script::Succeed, |facts| {
            facts.if_interrupted = JobIfInterrupted::Repeat;
            facts.lane = Some(Lane {
                name: "narrow".into(),
                limit: NonZeroU16::new(2).unwrap(),
            });
        });
        let jobs = if number % 2 == 0 { &one.jobs } else { &other.jobs };
        ids.push(submit(jobs, new).await);
    }
    for id in &ids {
        ended(&one.jobs, *id).await;
        assert_eq!(
            history(&one.jobs, *id).await,
            ["submitted", "claimed", "succeeded"]
        );
    }
    let shown = stage.board.shown();
    assert_eq!(shown.runs.len(), 60);
    assert!(shown.peak <= 2, "{}", shown.peak);
    counted(&one.jobs, |one| {
        let other = other.jobs.counts();
        (one.claimed + other.claimed, one.succeeded + other.succeeded) == (60, 60)
    })
    .await;
}

/// No time passes here: whoever has a free worker need not wait before it looks again.
#[tokio::test]
async fn a_free_worker_hears_at_once_of_each_job_that_another_daemon_takes() {
    let stage = Stage::by_hand();
    let takes = stage.sharing("takes", 0).await;
    let _works = stage.sharing("works", 1).await;
    for _ in 0..3 {
        let id = submit(&takes.jobs, job("a job", Script::Succeed)).await;
        ended(&takes.jobs, id).await;
        assert_eq!(&*stage.board.run(id, 1).await.daemon, "works");
    }
}

#[tokio::test]
async fn a_wish_reaches_the_daemon_that_has_the_job() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let other = stage.sharing("other", 0).await;
    let id = submit(&one.jobs, job("a job", Script::UntilStopped)).await;
    stage.board.run(id, 1).await;
    let wished = other.jobs.cancel(id, by_a_test()).await.unwrap();
    assert_eq!(wished.record.state.name(), JobState::Running);
    in_state_by_and_by(&stage, &other.jobs, id, JobState::Cancelled).await;
    assert_eq!(
        history(&other.jobs, id).await,
        ["submitted", "claimed", "cancel_requested", "cancelled"]
    );
}

#[tokio::test]
async fn the_jobs_of_a_daemon_that_lives_are_left_alone() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let id = submit(&one.jobs, repeatable("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let other = stage.sharing("other", 4).await;
    let worker = attempt(&get(&one.jobs, id).await).worker.clone();
    // Several leases long: it is renewed each time, and others look.
    for _ in 0..12 {
        stage.pass(LEASE / 3);
        renewed(&stage, &worker, LEASE).await;
        let look = submit(&other.jobs, job("a look", Script::Succeed)).await;
        ended(&other.jobs, look).await;
    }
    assert!(!run.scope.is_cancelled());
    run.order(Order::End(AttemptVerdict::Succeeded));
    in_state(&one.jobs, id, JobState::Succeeded).await;
    assert_eq!(
        history(&one.jobs, id).await,
        ["submitted", "claimed", "succeeded"]
    );
    assert_eq!(
        (one.jobs.counts().fenced, other.jobs.counts().interrupted),
        (0, 0)
    );
}

#[tokio::test]
async fn what_a_killed_daemon_had_is_taken_over_when_its_lease_is_over() {
    let stage = Stage::by_hand();
    let other = stage.sharing("other", 4).await;
    let killed = stage.sharing("killed", 4).await;
    other.jobs.set_max_workers(0).await;
    let once = submit(&killed.jobs, job("once", Script::Ordered)).await;
    let again = submit(&killed.jobs, repeatable("again", Script::Ordered)).await;
    for id in [once, again] {
        stage.board.run(id, 1).await;
    }
    killed.kill().await;
    other.jobs.set_max_workers(4).await;
    // Its lease is not over: nobody touches its jobs.
    stage.pass(A_LOOK);
    let look = submit(&other.jobs, job("a look", Script::Succeed)).await;
    ended(&other.jobs, look).await;
    for id in [once, again] {
        assert_eq!(history(&other.jobs, id).await, ["submitted", "claimed"]);
    }
    run_by_and_by(&stage, &stage.board, again, 2).await;
    stage
        .board
        .run(again, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    in_state_by_and_by(&stage, &other.jobs, once, JobState::Failed).await;
    in_state_by_and_by(&stage, &other.jobs, again, JobState::Succeeded).await;
    let State::Failed { reason, .. } = get(&other.jobs, once).await.record.state else {
        panic!("it has failed")
    };
    assert_eq!(reason, FailReason::Interrupted);
    assert_eq!(
        history(&other.jobs, once).await,
        ["submitted", "claimed", "interrupted", "failed"]
    );
    assert_eq!(
        history(&other.jobs, again).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
}

#[tokio::test]
async fn the_next_daemon_of_a_home_need_not_wait_for_the_lease_of_the_one_before() {
    let stage = Stage::by_hand();
    let setting = Setting {
        sharing: Sharing::WithOthers,
        ..stage.setting("first", 1)
    };
    let first = Daemon::start(&setting).await;
    let id = submit(&first.jobs, repeatable("a job", Script::Ordered)).await;
    stage.board.run(id, 1).await;
    first.kill().await;
    let next = Daemon::start(&setting).await;
    stage
        .board
        .run(id, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    ended(&next.jobs, id).await;
    assert_eq!(
        history(&next.jobs, id).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
}

#[tokio::test]
async fn a_daemon_that_stalled_for_too_long_is_fenced_and_goes_on_as_another_worker() {
    let stage = Stage::by_hand();
    let stalled = stage.sharing("stalled", 1).await;
    let id = submit(&stalled.jobs, repeatable("a job", Script::Stall)).await;
    let run = stage.board.run(id, 1).await;
    let before = attempt(&get(&stalled.jobs, id).await).worker.clone();
    let other = stage.sharing("other", 1).await;
    run_by_and_by(&stage, &stage.board, id, 2).await;
    let second = stage.board.run(id, 2).await;
    assert_eq!(&*second.daemon, "other");

    run.release(AttemptVerdict::Succeeded);
    until("its end is refused", || async {
        (stalled.jobs.counts().fenced == 1).then_some(())
    })
    .await;
    let now = get(&other.jobs, id).await;
    assert_eq!(
        (now.record.state.name(), attempt(&now).number),
        (JobState::Running, 2)
    );
    second.order(Order::End(AttemptVerdict::Succeeded));
    in_state(&other.jobs, id, JobState::Succeeded).await;
    assert_eq!(
        history(&other.jobs, id).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );

    other.jobs.close().await;
    let next = submit(&stalled.jobs, job("next", Script::Ordered)).await;
    run_by_and_by(&stage, &stage.board, next, 1).await;
    let after = attempt(&get(&stalled.jobs, next).await).worker.clone();
    assert_ne!(
        (before.lease_key, before.lease_token),
        (after.lease_key, after.lease_token)
    );
    stage
        .board
        .run(next, 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    in_state(&stalled.jobs, next, JobState::Succeeded).await;
}

#[tokio::test]
async fn an_end_under_a_lease_that_has_run_out_is_refused_though_nobody_took_it() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let id = submit(&one.jobs, repeatable("a job", Script::Stall)).await;
    let run = stage.board.run(id, 1).await;
    stage.pass(LEASE + Duration::from_secs(1));
    run.release(AttemptVerdict::Succeeded);
    // It may have been done, or not; who has lost the lease does not say so.
    run_by_and_by(&stage, &stage.board, id, 2).await;
    stage
        .board
        .run(id, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    in_state(&one.jobs, id, JobState::Succeeded).await;
    assert_eq!(
        history(&one.jobs, id).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
    assert_eq!(one.jobs.counts().fenced, 1);
}

#[tokio::test]
async fn a_lease_is_renewed_though_nothing_else_happens() {
    let stage = Stage::by_hand();
    // So short that nobody looks at anything before it runs out.
    let lease = Duration::from_secs(3);
    let setting = Setting {
        sharing: Sharing::WithOthers,
        lease,
        ..stage.setting("one", 1)
    };
    let one = Daemon::start(&setting).await;
    let id = submit(&one.jobs, job("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let worker = attempt(&get(&one.jobs, id).await).worker.clone();
    for _ in 0..4 {
        stage.pass(lease / 3);
        renewed(&stage, &worker, lease).await;
    }
    assert!(!run.scope.is_cancelled());
    run.order(Order::End(AttemptVerdict::Succeeded));
    in_state(&one.jobs, id, JobState::Succeeded).await;
}

/// Waits until the lease of a worker is as good as new. It must be held.
async fn renewed(stage: &Stage, worker: &Worker, lease: Duration) {
    until("the lease is renewed", || async {
        let held = stage.log.lease(&worker.lease_key, "a probe", lease).await;
        let Err(LeaseError::Held { remaining, .. }) = held else {
            panic!("it is not held: {held:?}")
        };
        (remaining > lease / 3 * 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_daemon_that_lost_its_lease_stops_what_it_runs_and_writes_nothing() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let id = submit(&one.jobs, repeatable("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let other = stage.sharing("other", 1).await;
    // The renewal comes too late by a moment.
    stage.pass(LEASE + Duration::from_secs(1));
    until("the handler is told", || async {
        run.scope.is_cancelled().then_some(())
    })
    .await;
    run_by_and_by(&stage, &stage.board, id, 2).await;
    let second = stage.board.run(id, 2).await;
    assert_eq!(&*second.daemon, "other");
    // It says that it has done its work. It is too late for that.
    run.order(Order::End(AttemptVerdict::Succeeded));
    until("its end is refused", || async {
        (one.jobs.counts().fenced == 1).then_some(())
    })
    .await;
    assert_eq!(attempt(&get(&other.jobs, id).await).number, 2);
    second.order(Order::End(AttemptVerdict::Succeeded));
    in_state(&other.jobs, id, JobState::Succeeded).await;
    assert_eq!(
        history(&other.jobs, id).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
}

#[tokio::test]
async fn a_daemon_that_lost_its_lease_and_has_nobody_beside_it_gives_its_jobs_up_itself() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 2).await;
    let once = submit(&one.jobs, job("once", Script::Ordered)).await;
    let again = submit(&one.jobs, repeatable("again", Script::Ordered)).await;
    let runs = [stage.board.run(once, 1).await, stage.board.run(again, 1).await];
    stage.pass(LEASE + Duration::from_secs(1));
    for run in runs {
        until("the handler is told", || async {
            run.scope.is_cancelled().then_some(())
        })
        .await;
        run.order(Order::ObeyStop);
    }
    run_by_and_by(&stage, &stage.board, again, 2).await;
    stage
        .board
        .run(again, 2)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    in_state_by_and_by(&stage, &one.jobs, once, JobState::Failed).await;
    in_state_by_and_by(&stage, &one.jobs, again, JobState::Succeeded).await;
    assert_eq!(one.jobs.counts().fenced, 2);
}

fn in_narrow_lane(title: &str, priority: Priority) -> NewJob {
    job_with(title, Script::Succeed, |facts| {
        facts.priority = priority;
        facts.lane = Some(Lane {
            name: "narrow".into(),
            limit: NonZeroU16::MIN,
        });
    })
}

fn ordered_in_narrow_lane() -> NewJob {
    let facts = in_narrow_lane("ordered", Priority::default()).facts;
    job_with("ordered", Script::Ordered, |ordered| ordered.lane = facts.lane)
}

/// The claim of a job was made, its answer was lost, and another job's claim finds the lane full of the first.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_does_not_wait_for_itself() {
    let mut stage = Stage::by_hand();
    let faults = Faults::default();
    stage.log = stage.log.with_faults(&faults);
    faults.plan(Fault::AnswerLost, "job-lane/", 0..1);
    let daemon = stage.sharing("one", 1).await;
    let claimed = submit(&daemon.jobs, in_narrow_lane("claimed", Priority::default())).await;
    until("the answer to the claim is lost", || async {
        (faults.happened(Fault::AnswerLost) == 1).then_some(())
    })
    .await;
    // The clock stands still, so nothing is claimed again before this job is there.
    let urgent = submit(&daemon.jobs, in_narrow_lane("urgent", Priority::HIGHEST)).await;
    for id in [claimed, urgent] {
        in_state_by_and_by(&stage, &daemon.jobs, id, JobState::Succeeded).await;
        assert_eq!(stage.board.runs_of(id).len(), 1);
        assert_eq!(
            history(&daemon.jobs, id).await,
            ["submitted", "claimed", "succeeded"]
        );
    }
}

/// The claim of a job was made, its answer was lost, and so was the lease. Nobody else is there to notice.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_with_the_lease_is_given_up() {
    let mut stage = Stage::by_hand();
    let faults = Faults::default();
    stage.log = stage.log.with_faults(&faults);
    faults.plan(Fault::AnswerLost, "job-lane/", 0..1);
    let daemon = stage.sharing("one", 1).await;
    let mut claimed = in_narrow_lane("claimed", Priority::default());
    claimed.facts.if_interrupted = JobIfInterrupted::Repeat;
    let id = submit(&daemon.jobs, claimed).await;
    until("the answer to the claim is lost", || async {
        (faults.happened(Fault::AnswerLost) == 1).then_some(())
    })
    .await;
    stage.pass(LEASE * 2);
    in_state_by_and_by(&stage, &daemon.jobs, id, JobState::Succeeded).await;
    assert_eq!(stage.board.runs_of(id).len(), 1);
    assert_eq!(
        history(&daemon.jobs, id).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
}

/// A job of another home waits for a lane. It is freed and collected before anybody looks.
#[tokio::test]
async fn a_lane_that_was_collected_while_others_waited_for_it_has_room() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let setting = Setting {
        sharing: Sharing::WithOthers,
        ..stage.setting("other", 1)
    };
    let other = Daemon::start(&setting).await;
    let first = submit(&one.jobs, ordered_in_narrow_lane()).await;
    let run = stage.board.run(first, 1).await;
    let mut waiting = in_narrow_lane("waiting", Priority::default());
    waiting.facts.home = Some(stage.home.to_string().into());
    let waiting = submit(&other.jobs, waiting).await;
    until("it waits for the lane", || async {
        (other.jobs.waiting_for(waiting).await == Some(WaitingFor::Lane)).then_some(())
    })
    .await;
    run.order(Order::End(AttemptVerdict::Succeeded));
    ended(&one.jobs, first).await;
    let nothing = GcPolicy {
        older_than: Duration::MAX,
        output_budget_bytes: None,
        keep_newest: u64::MAX,
    };
    one.jobs.collect(nothing).await.unwrap();
    in_state_by_and_by(&stage, &other.jobs, waiting, JobState::Succeeded).await;
}

/// A job that ran in a lane is gone from the log without its end.
#[tokio::test]
async fn a_lane_that_names_a_job_which_is_gone_is_freed() {
    for is_shared in [true, false] {
        let stage = Stage::by_hand();
        let before = stage.sharing("one", 1).await;
        let first = submit(&before.jobs, ordered_in_narrow_lane()).await;
        stage.board.run(first, 1).await;
        before.kill().await;
        let stream = stream(first);
        let version = stage.log.head(&stream).await.unwrap().unwrap().version;
        stage.log.remove(vec![(stream, version)]).await.unwrap();
        let daemon = match is_shared {
            true => stage.sharing("other", 1).await,
            false => stage.alone(1).await,
        };
        let waiting = submit(&daemon.jobs, in_narrow_lane("waiting", Priority::default())).await;
        in_state_by_and_by(&stage, &daemon.jobs, waiting, JobState::Succeeded).await;
    }
}
