//! How attempts and jobs end: limits, retries, panics, cancellations.

use std::time::Duration;

use eventlog::{Fault, Faults, Sequence};
use jobs::{AttemptVerdict, Ending, FailReason, Job, OutputItem, RetryPolicy, State, UnixMs};
use kernel::CancellationToken;
use protocol::{JobChannel, JobId, JobState};

use crate::{
    subjects::{
        board::{Order, Script, progress},
        daemon::{
            attempt, by_a_test, ended, get, history, job, job_with, rival, rival_cancel, submit, terminal,
            until,
        },
    },
    support::Stage,
};

fn failure(job: &Job) -> (FailReason, Option<&Ending>) {
    match &job.record.state {
        State::Failed { reason, ending } => (*reason, ending.as_ref()),
        state => panic!("it has not failed: {state:?}"),
    }
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_stopped() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let limited = job_with("limited", Script::UntilStopped, |facts| {
        facts.time_limit_ms = Some(5_000);
    });
    let id = submit(jobs, limited).await;
    let run = stage.board.run(id, 1).await;
    stage.pass(Duration::from_millis(4_999));
    assert!(!run.scope.is_cancelled());
    stage.pass(Duration::from_millis(1));
    let job = ended(jobs, id).await;
    assert_eq!(failure(&job).0, FailReason::TimedOut);
    assert_eq!(history(jobs, id).await, ["submitted", "claimed", "failed"]);
}

#[tokio::test]
async fn a_deadline_ends_a_job_that_waits_and_one_that_runs() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let now = get(jobs, submit(jobs, job("now", Script::Succeed)).await)
        .await
        .record
        .submitted_at;
    let until_then = |title: &str| {
        job_with(title, Script::UntilStopped, |facts| {
            facts.deadline = Some(now.after(Duration::from_secs(60)));
            facts.retry.max_retries = 5;
        })
    };
    let runs = submit(jobs, until_then("runs")).await;
    let run = stage.board.run(runs, 1).await;
    let waits = submit(jobs, until_then("waits")).await;
    stage.pass(Duration::from_secs(59));
    assert!(!run.scope.is_cancelled());
    assert_eq!(get(jobs, waits).await.record.state.name(), JobState::Queued);
    stage.pass(Duration::from_secs(1));
    for (id, expected) in [
        (runs, vec!["submitted", "claimed", "failed"]),
        (waits, vec!["submitted", "failed"]),
    ] {
        let job = ended(jobs, id).await;
        assert_eq!(failure(&job).0, FailReason::DeadlinePassed);
        assert_eq!(history(jobs, id).await, expected);
    }
    // One that comes too late is not even started.
    let late = submit(jobs, until_then("late")).await;
    assert_eq!(failure(&ended(jobs, late).await).0, FailReason::DeadlinePassed);
    assert_eq!(stage.board.runs_of(late).len(), 0);
}

fn not_before(job: &Job) -> Option<UnixMs> {
    match job.record.state {
        State::Queued { not_before, .. } => not_before,
        _ => None,
    }
}

#[tokio::test]
async fn retries_are_exact_and_wait_longer_each_time() {
    for max_retries in [0_u16, 1, 3] {
        let stage = Stage::by_hand();
        let daemon = stage.alone(2).await;
        let jobs = &daemon.jobs;
        let failing = job_with("failing", Script::Fail, |facts| {
            facts.retry = RetryPolicy {
                max_retries,
                first_pause_ms: 1_000,
                longest_pause_ms: 2_000,
            };
        });
        let id = submit(jobs, failing).await;
        for retry in 1..=max_retries {
            let queued = until("it waits for its next attempt", || async {
                let job = get(jobs, id).await;
                (job.record.failures == u32::from(retry)).then_some(job)
            })
            .await;
            let State::Queued { last: Some(last), .. } = &queued.record.state else {
                panic!("{:?}", queued.record.state)
            };
            let pause = not_before(&queued).unwrap().since(last.ended_at);
            let whole = Duration::from_millis(if retry == 1 { 1_000 } else { 2_000 });
            assert!(whole / 2 <= pause && pause <= whole, "{pause:?} before {retry}");
            stage.pass(pause - Duration::from_millis(1));
            // Whoever comes later is done first: the pause is not over.
            let other = submit(jobs, job("other", Script::Succeed)).await;
            ended(jobs, other).await;
            assert_eq!(stage.board.runs_of(id).len(), usize::from(retry));
            stage.pass(Duration::from_millis(1));
        }
        let job = ended(jobs, id).await;
        let attempts = u32::from(max_retries) + 1;
        assert_eq!(failure(&job).0, FailReason::AttemptFailed);
        assert_eq!((job.record.attempts, job.record.failures), (attempts, attempts));
        assert_eq!(stage.board.runs_of(id).len(), attempts as usize);
        let words = history(jobs, id).await;
        let count = |word: &str| words.iter().filter(|known| **known == word).count();
        assert_eq!(
            (count("claimed"), count("retrying"), count("failed")),
            (attempts as usize, usize::from(max_retries), 1)
        );
        assert_eq!(jobs.counts().retried, u64::from(max_retries));
    }
}

#[tokio::test]
async fn what_cannot_be_helped_is_not_tried_again_and_a_panic_is_a_failure() {
    let stage = Stage::by_hand();
    let daemon = stage.alone(2).await;
    let jobs = &daemon.jobs;
    let with_retry = |script| job_with("a job", script, |facts| facts.retry.max_retries = 1);
    let hopeless = submit(jobs, with_retry(Script::GiveUp)).await;
    let given_up = ended(jobs, hopeless).await;
    assert_eq!(
        (failure(&given_up).0, given_up.record.attempts),
        (FailReason::AttemptFailed, 1)
    );

    let panicking = submit(jobs, with_retry(Script::Panic)).await;
    until("it is tried again", || async {
        (get(jobs, panicking).await.record.failures == 1).then_some(())
    })
    .await;
    stage.pass(Duration::from_secs(60));
    let panicked = ended(jobs, panicking).await;
    let (reason, ending) = failure(&panicked);
    assert_eq!((reason, panicked.record.attempts), (FailReason::AttemptFailed, 2));
    assert_eq!(ending.unwrap().text, "the handler panicked: as it was told");
    // It has taken nobody with it.
    let next = submit(jobs, job("next", Script::Succeed)).await;
    ended(jobs, next).await;
}

#[tokio::test]
async fn a_cancelled_job_ends_when_its_handler_has() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let id = submit(jobs, job("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let wished = jobs.cancel(id, by_a_test()).await.unwrap();
    assert_eq!(wished.record.state.name(), JobState::Running);
    until("the handler is told", || async {
        run.scope.is_cancelled().then_some(())
    })
    .await;
    // A second wish changes nothing, and the first one stays.
    let second = jobs.cancel(id, by_a_test()).await.unwrap();
    assert_eq!(second, wished);
    run.order(Order::ObeyStop);
    let job = ended(jobs, id).await;
    assert_eq!(job.record.state.name(), JobState::Cancelled);
    assert_eq!(job.record.cancel, wished.record.cancel);
    assert_eq!(
        history(jobs, id).await,
        ["submitted", "claimed", "cancel_requested", "cancelled"]
    );
    let late = jobs.cancel(id, by_a_test()).await.unwrap_err();
    assert_eq!(late.to_string(), format!("the job {id} has ended"));
}

#[tokio::test]
async fn a_cancelled_attempt_that_fails_is_not_tried_again() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let new = job_with("a job", Script::Ordered, |facts| facts.retry.max_retries = 3);
    let id = submit(jobs, new).await;
    let run = stage.board.run(id, 1).await;
    jobs.cancel(id, by_a_test()).await.unwrap();
    run.order(Order::End(AttemptVerdict::Failed));
    assert_eq!(ended(jobs, id).await.record.state.name(), JobState::Cancelled);
    assert_eq!(stage.board.runs_of(id).len(), 1);
}

#[tokio::test]
async fn a_wish_that_the_worker_has_not_heard_of_is_honoured_by_the_commit() {
    // What the handler does, and what becomes of the job.
    for (verdict, expected) in [
        (AttemptVerdict::Succeeded, JobState::Succeeded),
        (AttemptVerdict::Failed, JobState::Cancelled),
    ] {
        let stage = Stage::in_real_time();
        let daemon = stage.alone(1).await;
        let jobs = &daemon.jobs;
        let new = job_with("a job", Script::Ordered, |facts| facts.retry.max_retries = 3);
        let id = submit(jobs, new).await;
        let run = stage.board.run(id, 1).await;
        rival_cancel(&stage.log, &get(jobs, id).await).await;
        run.order(Order::End(verdict));
        let job = ended(jobs, id).await;
        assert_eq!(job.record.state.name(), expected);
        assert_eq!(job.record.cancel.unwrap().by, "a rival");
        let words = history(jobs, id).await;
        assert_eq!((words.len(), terminal(&words)), (4, 1), "{words:?}");
    }
}

#[tokio::test]
async fn what_an_attempt_says_stands_beside_the_job_and_does_not_move_it() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let id = submit(jobs, job("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let before = get(jobs, id).await;
    let output = run.output.as_ref().unwrap();
    output.progress(progress(7)).await.unwrap();
    until("it is on disk", || async {
        let summary = jobs.output_summary(id).await.unwrap();
        (summary.progress == Some(progress(7))).then_some(())
    })
    .await;
    assert_eq!(get(jobs, id).await, before);
    run.order(Order::End(AttemptVerdict::Succeeded));
    let after = ended(jobs, id).await;
    // Nobody listens any more.
    output.progress(progress(8)).await.unwrap_err();
    assert_eq!(get(jobs, id).await, after);
}

#[tokio::test]
async fn an_end_that_another_attempt_was_faster_with_is_refused() {
    let stage = Stage::in_real_time();
    let daemon = stage.alone(1).await;
    let jobs = &daemon.jobs;
    let id = submit(jobs, job("a job", Script::Ordered)).await;
    let run = stage.board.run(id, 1).await;
    let seen = get(jobs, id).await;
    // The job is taken over: the number of the attempt has moved on.
    let claimed = format!(
        r#"{{"event":"claimed","attempt":2,"home":"{}"}}"#,
        JobId::generate()
    );
    rival(&stage.log, &seen, &claimed, |record| {
        record.attempts = 2;
        if let State::Running { attempt } = &mut record.state {
            attempt.number = 2;
        }
    })
    .await
    .unwrap();
    run.order(Order::End(AttemptVerdict::Succeeded));
    until("it is refused", || async {
        (jobs.counts().fenced == 1).then_some(())
    })
    .await;
    let now = get(jobs, id).await;
    assert_eq!(
        (now.record.state.name(), attempt(&now).number),
        (JobState::Running, 2)
    );
    assert_eq!(history(jobs, id).await, ["submitted", "claimed", "claimed"]);
    // The worker is free for the next one.
    let next = submit(jobs, job("next", Script::Succeed)).await;
    ended(jobs, next).await;
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_taken_up_and_a_wish_in_it_is_honoured() {
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Wish {
        None,
        Cancel,
    }
    for wish in [Wish::None, Wish::Cancel] {
        let stage = Stage::by_hand();
        let daemon = stage.alone(1).await;
        let jobs = &daemon.jobs;
        // A job of this worker tells how it signs its claims.
        let other = submit(jobs, job("other", Script::Ordered)).await;
        let run = stage.board.run(other, 1).await;
        let mut sample = attempt(&get(jobs, other).await).clone();
        sample.number = 1;
        run.order(Order::End(AttemptVerdict::Succeeded));
        ended(jobs, other).await;

        let mut new = job("a job", Script::Ordered);
        new.delay = Duration::from_secs(1);
        let id = submit(jobs, new).await;
        let seen = get(jobs, id).await;
        let claimed = format!(r#"{{"event":"claimed","attempt":1,"home":"{}"}}"#, stage.home);
        rival(&stage.log, &seen, &claimed, |record| {
            record.attempts = 1;
            record.state = State::Running { attempt: sample };
        })
        .await
        .unwrap();
        if wish == Wish::Cancel {
            rival_cancel(&stage.log, &get(jobs, id).await).await;
        }
        stage.pass(Duration::from_secs(1));
        match wish {
            Wish::None => {
                stage
                    .board
                    .run(id, 1)
                    .await
                    .order(Order::End(AttemptVerdict::Succeeded));
                assert_eq!(ended(jobs, id).await.record.state.name(), JobState::Succeeded);
            }
            Wish::Cancel => {
                assert_eq!(ended(jobs, id).await.record.state.name(), JobState::Cancelled);
                assert_eq!(stage.board.runs_of(id).len(), 0);
            }
        }
        assert_eq!(terminal(&history(jobs, id).await), 1);
    }
}

#[tokio::test]
async fn a_job_whose_handler_is_not_known_fails_when_nobody_else_could_know_it() {
    let stage = Stage::in_real_time();
    let first = stage.alone(0).await;
    let id = submit(&first.jobs, job("a job", Script::Succeed)).await;
    let seen = get(&first.jobs, id).await;
    first.kill().await;
    let noted = r#"{"event":"released","attempt":0}"#;
    rival(&stage.log, &seen, noted, |record| {
        record.facts.handler = "gone".into()
    })
    .await
    .unwrap();
    let next = stage.alone(1).await;
    let job = ended(&next.jobs, id).await;
    assert_eq!(failure(&job).0, FailReason::NoHandler);
}

#[tokio::test]
async fn a_job_that_succeeded_without_its_output_says_so() {
    for (fault, count) in [(Fault::Commit, usize::MAX), (Fault::RollBack, 1)] {
        let mut stage = Stage::in_real_time();
        let faults = Faults::default();
        stage.log = stage.log.with_faults(&faults);
        faults.plan(fault, "job-output/", 0..count);
        let daemon = stage.alone(1).await;
        let id = submit(&daemon.jobs, job("speaks", Script::Ordered)).await;
        let run = stage.board.run(id, 1).await;
        let output = run.output.as_ref().expect("it can speak");
        output.write(JobChannel::Stdout, b"last words").await.unwrap();
        until("the log to fail", async || {
            (faults.happened(fault) > 0).then_some(())
        })
        .await;
        run.order(Order::End(AttemptVerdict::Succeeded));
        let ended = ended(&daemon.jobs, id).await;
        let State::Succeeded { ending } = &ended.record.state else {
            panic!("it has not succeeded: {ended:?}");
        };
        let kept = daemon.jobs.output_summary(id).await.unwrap();
        assert!(
            ending.lost_output(&kept).is_some(),
            "{fault:?}: {ending:?} {kept:?}"
        );
    }
}

/// The server of the log crashes while a job speaks, and loses what it had acknowledged: the first piece, or a later one.
#[tokio::test]
async fn output_that_was_taken_back_is_written_again() {
    for lost in 0..3 {
        let mut stage = Stage::in_real_time();
        let faults = Faults::default();
        stage.log = stage.log.with_faults(&faults);
        faults.plan(Fault::RollBack, "job-output/", lost..lost + 1);
        let daemon = stage.alone(1).await;
        let id = submit(&daemon.jobs, job("speaks", Script::Ordered)).await;
        let run = stage.board.run(id, 1).await;
        let output = run.output.as_ref().expect("it can speak");
        for (number, words) in ["one, ", "two, ", "three, ", "four"].into_iter().enumerate() {
            output.write(JobChannel::Stdout, words.as_bytes()).await.unwrap();
            // Each piece goes into a commit of its own.
            until("it is written", async || {
                let is_lost = number == lost && faults.happened(Fault::RollBack) > 0;
                let kept = daemon.jobs.output_summary(id).await.unwrap();
                (is_lost || kept.last_sequence.get() > number as u64).then_some(())
            })
            .await;
        }
        run.order(Order::End(AttemptVerdict::Succeeded));
        let ended = ended(&daemon.jobs, id).await;
        let State::Succeeded { ending } = &ended.record.state else {
            panic!("it has not succeeded: {ended:?}");
        };
        let kept = daemon.jobs.output_summary(id).await.unwrap();
        assert_eq!(ending.lost_output(&kept), None, "{lost}");
        let scope = CancellationToken::new().scope();
        let mut said = daemon.jobs.follow(id, Sequence::START, &scope);
        let mut text = Vec::new();
        while let OutputItem::Piece(piece) = said.next().await.unwrap() {
            text.extend_from_slice(&piece.bytes);
        }
        assert_eq!(text, b"one, two, three, four", "{lost}");
    }
}

#[tokio::test]
async fn an_outage_costs_no_output_and_doubles_none() {
    for fault in [Fault::Away, Fault::AnswerLost] {
        let mut stage = Stage::in_real_time();
        let faults = Faults::default();
        stage.log = stage.log.with_faults(&faults);
        faults.plan(fault, "job-output/", 0..1);
        faults.plan(Fault::Away, "job-output/", 1..4);
        let daemon = stage.alone(1).await;
        let id = submit(&daemon.jobs, job("speaks", Script::Ordered)).await;
        let run = stage.board.run(id, 1).await;
        let output = run.output.as_ref().expect("it can speak");
        output.write(JobChannel::Stdout, b"first words, ").await.unwrap();
        until("the log to be away", async || {
            (faults.happened(fault) > 0).then_some(())
        })
        .await;
        output.write(JobChannel::Stdout, b"last words").await.unwrap();
        run.order(Order::End(AttemptVerdict::Succeeded));
        let ended = ended(&daemon.jobs, id).await;
        let State::Succeeded { ending } = &ended.record.state else {
            panic!("it has not succeeded: {ended:?}");
        };
        let kept = daemon.jobs.output_summary(id).await.unwrap();
        assert_eq!(ending.lost_output(&kept), None, "{fault:?}");
        let mut said = daemon
            .jobs
            .follow(id, Sequence::START, &CancellationToken::new().scope());
        let mut text = Vec::new();
        while let OutputItem::Piece(piece) = said.next().await.unwrap() {
            text.extend_from_slice(&piece.bytes);
        }
        assert_eq!(text, b"first words, last words", "{fault:?}");
    }
}
