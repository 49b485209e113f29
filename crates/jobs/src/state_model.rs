//! Random histories of one job, with several workers that also report on attempts that are no longer theirs. A
//! model that only counts predicts the result of each step; the written history is checked at the end.

mod actions;

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use protocol::{JobId, JobIfInterrupted, JobState};
use serde_json::Value;

use self::actions::{Action, START_MS, Speaker, action, facts};
use crate::{
    history::Happening,
    job::{Facts, FailReason, NewJob, OutputEnd, Record, State, Worker},
    state::{Change, End, MAX_INTERRUPTIONS, Refused, StopCause, apply, pause, submitted},
};
use eventlog::UnixMs;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Waiting { until: u64 },
    Running,
    Over(JobState, Option<FailReason>),
}

/// What is known about the job without reading its record.
#[derive(Debug)]
struct Model {
    facts: Facts,
    phase: Phase,
    /// The worker of each claim so far.
    claims: Vec<usize>,
    failures: u32,
    interruptions: u32,
    is_wished: bool,
    now: u64,
}

/// The outcome of a step in the model: the next phase, and the names of the events written.
type Expected = Result<(Phase, Vec<&'static str>), Refused>;

impl Model {
    fn is_late(&self) -> bool {
        self.facts.deadline.is_some_and(|deadline| deadline.0 <= self.now)
    }

    /// The phase after a claim was lost, if the job isn't queued again.
    fn over(&self, reason: FailReason) -> (Phase, Vec<&'static str>) {
        if self.is_wished {
            (Phase::Over(JobState::Cancelled, None), vec!["cancelled"])
        } else {
            (Phase::Over(JobState::Failed, Some(reason)), vec!["failed"])
        }
    }

    fn only_waiting(&self) -> Result<(), Refused> {
        match self.phase {
            Phase::Waiting { .. } => Ok(()),
            Phase::Running => Err(Refused::NotQueued),
            Phase::Over(..) => Err(Refused::Ended),
        }
    }

    fn only_running(&self, back: usize) -> Result<(), Refused> {
        match self.phase {
            Phase::Waiting { .. } => Err(Refused::NotRunning),
            Phase::Over(..) => Err(Refused::Ended),
            Phase::Running if back == 0 => Ok(()),
            Phase::Running => Err(Refused::Fenced),
        }
    }

    fn act(&mut self, action: Action) -> Expected {
        match action {
            Action::Pass { ms } => {
                self.now += ms;
                Err(Refused::TooEarly)
            }
            Action::Claim { worker } => self.claim(worker),
            Action::Cancel => self.cancel(),
            Action::Finish {
                back,
                by,
                end,
                jitter,
            } => {
                let owner = self.owner(back);
                let is_owner = match by {
                    Speaker::WhoeverMadeIt => true,
                    Speaker::Worker(worker) => Some(worker) == owner,
                };
                if self.phase != Phase::Running || back != 0 || !is_owner {
                    return Err(Refused::Fenced);
                }
                Ok(self.finish(end, jitter))
            }
            Action::Interrupt { back, jitter } => {
                self.only_running(back)?;
                Ok(self.interrupt(jitter))
            }
            Action::Release { back } => {
                self.only_running(back)?;
                if self.is_wished {
                    let cancelled = Phase::Over(JobState::Cancelled, None);
                    return Ok((cancelled, vec!["released", "cancelled"]));
                }
                Ok((Phase::Waiting { until: 0 }, vec!["released"]))
            }
            Action::Expire => {
                self.only_waiting()?;
                if self.is_late() {
                    Ok(self.over(FailReason::DeadlinePassed))
                } else {
                    Err(Refused::TooEarly)
                }
            }
            Action::DependencyFailed => {
                self.only_waiting()?;
                Ok(self.over(FailReason::DependencyFailed))
            }
            Action::NoHandler => {
                self.only_waiting()?;
                Ok(self.over(FailReason::NoHandler))
            }
        }
    }

    fn owner(&self, back: usize) -> Option<usize> {
        let index = self.claims.len().checked_sub(back + 1)?;
        self.claims.get(index).copied()
    }

    fn claim(&mut self, worker: usize) -> Expected {
        self.only_waiting()?;
        if matches!(self.phase, Phase::Waiting { until } if self.now < until) {
            return Err(Refused::TooEarly);
        }
        if self.is_late() {
            return Err(Refused::DeadlinePassed);
        }
        self.claims.push(worker);
        Ok((Phase::Running, vec!["claimed"]))
    }

    fn cancel(&mut self) -> Expected {
        match self.phase {
            Phase::Over(..) => return Err(Refused::Ended),
            _ if self.is_wished => return Err(Refused::AlreadyCancelling),
            _ => self.is_wished = true,
        }
        Ok(match self.phase {
            Phase::Running => (Phase::Running, vec!["cancel_requested"]),
            _ => {
                let cancelled = Phase::Over(JobState::Cancelled, None);
                (cancelled, vec!["cancel_requested", "cancelled"])
            }
        })
    }

    fn finish(&mut self, end: End, jitter: f64) -> (Phase, Vec<&'static str>) {
        let reason = match end {
            End::Succeeded => return (Phase::Over(JobState::Succeeded, None), vec!["succeeded"]),
            End::Stopped(StopCause::Cancelled) => {
                return (Phase::Over(JobState::Cancelled, None), vec!["cancelled"]);
            }
            End::Stopped(StopCause::Draining) => return self.interrupt(jitter),
            _ if self.is_late() => FailReason::DeadlinePassed,
            End::Stopped(StopCause::Deadline) => FailReason::DeadlinePassed,
            End::Stopped(StopCause::TimeLimit) => FailReason::TimedOut,
            End::Failed | End::FailedPermanently => FailReason::AttemptFailed,
        };
        self.failures += 1;
        let is_last_try = self.failures > u32::from(self.facts.retry.max_retries);
        let until = self.now + self.pause_ms(self.failures, jitter);
        let comes_too_late = self.facts.deadline.is_some_and(|deadline| deadline.0 <= until);
        let gives_up = matches!(end, End::FailedPermanently) || reason == FailReason::DeadlinePassed;
        if self.is_wished || is_last_try || comes_too_late || gives_up {
            self.over(reason)
        } else {
            (Phase::Waiting { until }, vec!["retrying"])
        }
    }

    fn interrupt(&mut self, jitter: f64) -> (Phase, Vec<&'static str>) {
        self.interruptions += 1;
        let is_final = self.facts.if_interrupted == JobIfInterrupted::Fail;
        if self.is_wished || is_final || self.interruptions > MAX_INTERRUPTIONS {
            let (phase, mut words) = self.over(FailReason::Interrupted);
            words.insert(0, "interrupted");
            return (phase, words);
        }
        let until = match self.interruptions {
            1 => 0,
            more => self.now + self.pause_ms(more - 1, jitter),
        };
        (Phase::Waiting { until }, vec!["interrupted"])
    }

    fn pause_ms(&self, nth: u32, jitter: f64) -> u64 {
        let pause = pause(&self.facts.retry, nth, jitter);
        u64::try_from(pause.as_millis()).unwrap()
    }
}

fn workers() -> [Worker; 3] {
    // The second and the third are two boots of one home.
    [("a", 1), ("b", 2), ("b", 3)].map(|(home, lease_token)| Worker {
        lease_key: Arc::from(format!("job-worker/{home}")),
        lease_token,
        home: Arc::from(home),
    })
}

/// A job next to its model.
#[derive(Debug)]
struct World {
    workers: [Worker; 3],
    record: Record,
    history: Vec<Happening>,
    model: Model,
}

impl World {
    fn new(facts: Facts, delay_ms: u64) -> Self {
        let start = START_MS;
        let delay = Duration::from_millis(delay_ms);
        let (record, happening) = submitted(facts.clone(), delay, UnixMs(start));
        let model = Model {
            facts,
            phase: Phase::Waiting {
                until: start + delay_ms,
            },
            claims: Vec::new(),
            failures: 0,
            interruptions: 0,
            is_wished: false,
            now: start,
        };
        Self {
            workers: workers(),
            record,
            history: vec![happening],
            model,
        }
    }

    fn act(&mut self, action: Action) {
        let owner = match action {
            Action::Finish { back, .. } => self.model.owner(back),
            _ => None,
        };
        let made = u32::try_from(self.model.claims.len()).unwrap();
        let expected = self.model.act(action);
        let now = UnixMs(self.model.now);
        let attempt = |back: usize| made.wrapping_sub(u32::try_from(back).unwrap());
        let change = match action {
            Action::Pass { .. } => return,
            Action::Claim { worker } => Change::Claim {
                worker: self.workers[worker].clone(),
                now,
            },
            Action::Cancel => Change::Cancel {
                by: format!("at {now}"),
                why: String::new(),
                now,
            },
            Action::Finish {
                back,
                by,
                end,
                jitter,
            } => Change::Finish {
                attempt: attempt(back),
                worker: match by {
                    Speaker::WhoeverMadeIt => self.workers[owner.unwrap_or(0)].clone(),
                    Speaker::Worker(worker) => self.workers[worker].clone(),
                },
                end,
                text: "it ended".to_owned(),
                result: Value::from(made),
                output: OutputEnd::default(),
                now,
                jitter,
            },
            Action::Interrupt { back, jitter } => Change::Interrupt {
                attempt: attempt(back),
                text: "its worker is gone".to_owned(),
                now,
                jitter,
            },
            Action::Release { back } => Change::Release {
                attempt: attempt(back),
                now,
            },
            Action::Expire => Change::Expire { now },
            Action::DependencyFailed => Change::DependencyFailed {
                id: JobId::generate(),
                state: JobState::Failed,
                now,
            },
            Action::NoHandler => Change::NoHandler { now },
        };
        match (apply(&self.record, change), expected) {
            (Ok(step), Ok((phase, words))) => {
                let written: Vec<_> = step.happenings.iter().map(Happening::name).collect();
                assert_eq!(written, words, "{action:?}");
                self.model.phase = phase;
                self.record = step.record;
                self.history.extend(step.happenings);
            }
            (answer, expected) => assert_eq!(answer.map(|_| ()), expected.map(|_| ()), "{action:?}"),
        }
        self.compare();
    }

    /// Checks that the record agrees with the model.
    fn compare(&self) {
        let (record, model) = (&self.record, &self.model);
        let claims = u32::try_from(model.claims.len()).unwrap();
        let counted = (claims, model.failures, model.interruptions, model.is_wished);
        let written = (
            record.attempts,
            record.failures,
            record.interruptions,
            record.cancel.is_some(),
        );
        assert_eq!(written, counted);
        match (&record.state, model.phase) {
            (State::Queued { not_before, .. }, Phase::Waiting { until }) => {
                assert!(record.cancel.is_none(), "it waits, and is to be cancelled");
                let moment = not_before.map_or(0, |moment| moment.0);
                // The first wait is stored only if there is one.
                assert_eq!(
                    moment.max(record.submitted_at.0),
                    until.max(record.submitted_at.0)
                );
            }
            (State::Running { attempt }, Phase::Running) => {
                let owner = &self.workers[model.owner(0).unwrap()];
                assert_eq!((attempt.number, &attempt.worker), (claims, owner));
            }
            (state, Phase::Over(name, expected_reason)) => {
                let reason = match state {
                    State::Failed { reason, .. } => Some(*reason),
                    _ => None,
                };
                assert_eq!((state.name(), reason), (name, expected_reason));
                assert!(record.ended_at().is_some());
            }
            (state, phase) => panic!("{state:?} is not {phase:?}"),
        }
    }

    /// Checks what must hold for every history, independent of the model.
    fn look_back(&self) {
        let is_end = |happening: &Happening| matches!(happening.name(), "succeeded" | "failed" | "cancelled");
        let ends: Vec<_> = self.history.iter().map(is_end).collect();
        let count = ends.iter().filter(|is_end| **is_end).count();
        assert_eq!(count, usize::from(self.record.state.is_terminal()));
        assert_eq!(ends.last().copied(), Some(self.record.state.is_terminal()));

        let (mut claimed, mut settled, mut retries) = (Vec::new(), Vec::new(), 0);
        for happening in &self.history {
            match happening {
                Happening::Claimed { attempt, .. } => claimed.push(*attempt),
                Happening::Released { attempt } | Happening::Interrupted { attempt, .. } => {
                    settled.push(*attempt)
                }
                Happening::Retrying { ending, .. } => {
                    retries += 1;
                    settled.push(ending.attempt);
                }
                _ => {}
            }
        }
        assert!(claimed.is_sorted_by(|one, next| one < next), "{claimed:?}");
        assert!(
            settled.is_sorted_by(|one, next| one < next),
            "settled twice: {settled:?}"
        );
        assert!(settled.iter().all(|attempt| claimed.contains(attempt)));
        assert!(retries <= u32::from(self.record.facts.retry.max_retries));
        let wishes = self
            .history
            .iter()
            .filter(|happening| happening.name() == "cancel_requested");
        assert_eq!(wishes.count(), usize::from(self.record.cancel.is_some()));
    }
}

/// What happens between two attempts that both fail in the end.
#[derive(Clone, Copy, Debug)]
enum Detour {
    Released,
    Interrupted,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_as_the_model_says(
        (facts, delay_ms) in facts(),
        actions in prop::collection::vec(action(), 1..80),
    ) {
        let mut world = World::new(facts, delay_ms);
        for action in actions {
            world.act(action);
        }
        world.look_back();
    }

    #[test]
    fn a_job_that_always_fails_is_tried_exactly_so_often(
        max_retries in 0_u16..6,
        detours in prop::collection::vec(
            prop_oneof![Just(Detour::Released), Just(Detour::Interrupted)],
            0..MAX_INTERRUPTIONS as usize,
        ),
    ) {
        let (mut facts, later) = (NewJob::new("command", "test", Vec::new(), "me").facts, 100_000);
        facts.retry.max_retries = max_retries;
        facts.if_interrupted = JobIfInterrupted::Repeat;
        let mut world = World::new(facts, 0);
        let mut detours = detours.into_iter();
        let mut failed = 0;
        while !world.record.state.is_terminal() {
            world.act(Action::Pass { ms: later });
            world.act(Action::Claim { worker: failed % 3 });
            match detours.next() {
                Some(Detour::Released) => world.act(Action::Release { back: 0 }),
                Some(Detour::Interrupted) => world.act(Action::Interrupt { back: 0, jitter: 0.5 }),
                None => {
                    let by = Speaker::WhoeverMadeIt;
                    world.act(Action::Finish { back: 0, by, end: End::Failed, jitter: 0.5 });
                    failed += 1;
                }
            }
        }
        world.look_back();
        prop_assert_eq!(failed, usize::from(max_retries) + 1);
        let is_failed = matches!(world.record.state, State::Failed { reason: FailReason::AttemptFailed, .. });
        prop_assert!(is_failed, "{:?}", world.record.state);
    }
}
