//! What must be true of every history, whatever happened to the workers.
//!
//! The rules look at what is in the log and in the diary of the handlers, and at nothing that the service says of
//! itself.

use std::collections::{BTreeMap, BTreeSet};

use jobs::{FailReason, Happening, Moment, Record, State};
use protocol::{JobId, JobIfInterrupted};

use crate::play::{Part, PartEnd};

/// A job that may be repeated is given up when it has lost its worker more often than this.
const MOST_INTERRUPTIONS: u32 = 10;

/// A job at the end of a storm.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) id: JobId,
    pub(crate) record: Record,
    pub(crate) moments: Vec<Moment>,
    pub(crate) part: Part,
    /// The attempts that the handlers have begun, as often as they have.
    pub(crate) begun: Vec<u32>,
}

/// Where a job is while its history is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Nowhere,
    Queued,
    Claimed(u32),
    Over,
}

/// A history, counted.
#[derive(Debug)]
struct Reader<'a> {
    seen: &'a Seen,
    at: At,
    last: u32,
    retries: u32,
    interruptions: u32,
    releases: u32,
    is_cancel_wanted: bool,
    faults: Vec<String>,
}

/// What is wrong with the history of one job.
pub(crate) fn faults_of_job(seen: &Seen) -> Vec<String> {
    let mut reader = Reader {
        seen,
        at: At::Nowhere,
        last: 0,
        retries: 0,
        interruptions: 0,
        releases: 0,
        is_cancel_wanted: false,
        faults: Vec::new(),
    };
    for moment in &seen.moments {
        reader.read(&moment.happening);
    }
    reader.end();
    let told: Vec<String> = seen
        .moments
        .iter()
        .map(|moment| words(&moment.happening))
        .collect();
    let of_job = |fault: &String| format!("{}: {fault}: {told:?}, begun {:?}", seen.id, seen.begun);
    reader.faults.iter().map(of_job).collect()
}

/// What happened, short enough for a list.
fn words(happening: &Happening) -> String {
    let text = match happening {
        Happening::Retrying { ending, reason, .. } => format!(" {reason:?} {}", ending.text),
        Happening::Interrupted { text, .. } => format!(" {text}"),
        Happening::Failed { reason, ending } => {
            let text = ending.as_ref().map_or("", |ending| &ending.text);
            format!(" {reason:?} {text}")
        }
        _ => String::new(),
    };
    format!("{}{text}", happening.name())
}

impl Reader<'_> {
    fn fault(&mut self, text: &str) {
        self.faults.push(text.to_owned());
    }

    fn must(&mut self, is_true: bool, text: &str) {
        if !is_true {
            self.fault(text);
        }
    }

    /// An attempt is over; it must be the one that was claimed last.
    fn gives_up_claim(&mut self, attempt: u32, next: At) {
        self.must(
            self.at == At::Claimed(attempt),
            "an attempt ends that nobody has claimed",
        );
        self.at = next;
    }

    fn read(&mut self, happening: &Happening) {
        self.must(self.at != At::Over, "something happens after the end");
        let part = self.seen.part;
        match happening {
            Happening::Submitted { .. } => {
                self.must(self.at == At::Nowhere, "it is submitted twice");
                self.at = At::Queued;
            }
            Happening::Claimed { attempt, .. } => {
                self.must(self.at == At::Queued, "it is claimed and somebody has it");
                self.must(*attempt == self.last + 1, "the number of a claim is not the next");
                self.must(!self.is_cancel_wanted, "it is claimed and is to be cancelled");
                let may_be_repeated = self.seen.record.facts.if_interrupted == JobIfInterrupted::Repeat;
                self.must(
                    self.interruptions == 0 || may_be_repeated,
                    "it is repeated, and must not be",
                );
                self.last = *attempt;
                self.at = At::Claimed(*attempt);
            }
            Happening::Released { attempt } => {
                self.releases += 1;
                self.gives_up_claim(*attempt, At::Queued);
                let is_begun = self.seen.begun.contains(attempt);
                self.must(!is_begun, "a claim is given back and was begun");
            }
            Happening::CancelRequested { .. } => {
                self.must(!self.is_cancel_wanted, "a cancellation is wanted twice");
                self.is_cancel_wanted = true;
            }
            Happening::Retrying { ending, reason, .. } => {
                self.retries += 1;
                self.gives_up_claim(ending.attempt, At::Queued);
                self.failed_as_it_should(ending.attempt, *reason);
            }
            Happening::Interrupted { attempt, .. } => {
                self.interruptions += 1;
                self.gives_up_claim(*attempt, At::Queued);
            }
            Happening::Succeeded { ending } => {
                self.gives_up_claim(ending.attempt, At::Over);
                self.was_begun(ending.attempt);
                self.must(
                    part.succeeds_in(ending.attempt),
                    "it succeeds and should have failed",
                );
            }
            Happening::Failed { reason, ending } => {
                let attempt = ending.as_ref().map_or(0, |ending| ending.attempt);
                self.given_up(*reason, attempt);
            }
            Happening::Cancelled { .. } => {
                self.must(self.is_cancel_wanted, "it is cancelled and nobody wanted that");
                self.at = At::Over;
            }
        }
    }

    fn was_begun(&mut self, attempt: u32) {
        let is_begun = self.seen.begun.contains(&attempt);
        self.must(is_begun, "an attempt ends that was never begun");
    }

    fn failed_as_it_should(&mut self, attempt: u32, reason: FailReason) {
        match reason {
            FailReason::AttemptFailed => {
                self.was_begun(attempt);
                let fails = !self.seen.part.succeeds_in(attempt);
                self.must(fails, "it fails and should have succeeded");
            }
            FailReason::TimedOut => {
                let has_limit = self.seen.record.facts.time_limit_ms.is_some();
                self.must(has_limit, "it is out of time and has no limit");
            }
            _ => self.fault("an attempt fails for a reason that is none of its own"),
        }
    }

    fn given_up(&mut self, reason: FailReason, attempt: u32) {
        let facts = &self.seen.record.facts;
        match reason {
            FailReason::AttemptFailed | FailReason::TimedOut => {
                let (is_exact, gives_up) = (
                    self.retries == u32::from(facts.retry.max_retries),
                    self.seen.part.end == PartEnd::GivesUp && reason == FailReason::AttemptFailed,
                );
                self.gives_up_claim(attempt, At::Over);
                self.failed_as_it_should(attempt, reason);
                self.must(is_exact || gives_up, "it is given up and has retries left");
            }
            FailReason::Interrupted => {
                self.must(self.at == At::Queued, "it is interrupted and somebody has it");
                let is_right = match facts.if_interrupted {
                    JobIfInterrupted::Fail => self.interruptions == 1,
                    JobIfInterrupted::Repeat => self.interruptions == MOST_INTERRUPTIONS + 1,
                };
                self.must(
                    is_right,
                    "it is given up for interruptions, and not as it was asked for",
                );
            }
            FailReason::DependencyFailed => {
                self.must(
                    self.at == At::Queued && self.last == 0,
                    "it waits for a job and has run",
                );
                self.must(
                    !facts.after.is_empty(),
                    "it fails for a job that it does not wait for",
                );
            }
            FailReason::DeadlinePassed | FailReason::NoHandler => {
                self.fault("it is given up for something that no storm does");
            }
        }
        self.at = At::Over;
    }

    fn end(&mut self) {
        let Seen { record, begun, .. } = self.seen;
        self.must(self.at == At::Over, "it has not ended");
        self.must(record.state.is_terminal(), "its head says that it has not ended");
        let last_word = self.seen.moments.last().map(|moment| moment.happening.name());
        self.must(
            last_word == Some(record.state.name().as_str()),
            "the head says something else than the history",
        );
        self.must(
            record.attempts == self.last,
            "the claims are not as many as the head says",
        );
        self.must(
            record.interruptions == self.interruptions,
            "the interruptions are not as many as the head says",
        );
        let most = u32::from(record.facts.retry.max_retries);
        self.must(self.retries <= most, "there are more retries than were asked for");
        self.must(
            record.failures == self.retries || record.failures == self.retries + 1,
            "the failures are not as many as the head says",
        );
        // Each claim was given up, but the last one may have ended with the job.
        let given_up = self.retries + self.interruptions + self.releases;
        self.must(
            given_up == self.last || given_up + 1 == self.last,
            "the claims are not one more than what they came to",
        );
        let distinct: BTreeSet<u32> = begun.iter().copied().collect();
        self.must(distinct.len() == begun.len(), "a claim was begun twice");
        let are_claimed = distinct.iter().all(|attempt| (1..=self.last).contains(attempt));
        self.must(are_claimed, "something was begun that nobody has claimed");
    }
}

/// How a lane is used: when one more runs in it, and when one less.
#[derive(Default)]
struct Use {
    limit: i32,
    changes: Vec<(u64, i32)>,
}

/// What is wrong between jobs: limits of lanes, and jobs that did not wait for others.
pub(crate) fn faults_between_jobs(all: &[Seen]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut lanes: BTreeMap<&str, Use> = BTreeMap::new();
    for seen in all {
        if let Some(lane) = &seen.record.facts.lane {
            let lane_use = lanes.entry(&lane.name).or_default();
            lane_use.limit = i32::from(lane.limit.get());
            let changes = held(seen)
                .into_iter()
                .flat_map(|(from, to)| [(from, 1), (to, -1)]);
            lane_use.changes.extend(changes);
        }
    }
    for (name, Use { limit, mut changes }) in lanes {
        // Times are in whole milliseconds, so what ends and begins in the same one is taken to end first.
        changes.sort_unstable();
        let mut running = 0;
        for (at, change) in changes {
            running += change;
            if running > limit {
                faults.push(format!("{name}: {running} run at {at}, and {limit} may"));
            }
        }
    }
    let ends: BTreeMap<JobId, &Seen> = all.iter().map(|seen| (seen.id, seen)).collect();
    for seen in all.iter().filter(|seen| seen.record.attempts > 0) {
        for id in &seen.record.facts.after {
            let state = ends.get(id).map(|before| &before.record.state);
            if !matches!(state, Some(State::Succeeded { .. })) {
                faults.push(format!("{}: it ran, and {id} has not succeeded", seen.id));
            }
        }
    }
    faults
}

/// The times in which somebody had a job, as the log has written them down, longer than a millisecond.
fn held(seen: &Seen) -> Vec<(u64, u64)> {
    let (mut times, mut since) = (Vec::new(), None);
    for moment in &seen.moments {
        let at = moment.at.0;
        match moment.happening {
            Happening::Claimed { .. } => since = Some(at),
            Happening::Submitted { .. } | Happening::CancelRequested { .. } => {}
            _ => times.extend(since.take().map(|from| (from, at))),
        }
    }
    times.retain(|(from, to)| from < to);
    times
}
