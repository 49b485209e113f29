//! Converts jobs for the wire, for the HTTP API and the page.

mod moments;
mod submission;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eventlog::LogError;
use jobs::{
    Counts, Ending, Job, Jobs, Lane, ListQuery, Moment, OutputSummary, Piece, Pool, State, UnixMs, WaitingFor,
};
use machines::Machines;
use protocol::HomeId;
use serde::Deserialize;

pub(crate) use moments::moments_to_wire;
pub(crate) use submission::{invalid, to_new_job};

use crate::app::whole_ms;
use crate::durable::machine_to_wire;
use crate::plans::finished_of;
use crate::times::{rfc3339_ms, written};

/// A job with everything that is currently known about it.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn view(jobs: &Jobs, machines: &Machines, job: &Job) -> Result<protocol::Job, LogError> {
    let mut shown = several(jobs, machines, std::slice::from_ref(job)).await?;
    shown.pop().ok_or(LogError::Closed)
}

/// A job that has ended, with the state of its output.
pub(crate) fn ended(jobs: &Jobs, machines: &Machines, job: &Job, output: &OutputSummary) -> protocol::Job {
    of_machine(machines, job, to_wire(job, output, None, jobs.now()))
}

fn of_machine(machines: &Machines, job: &Job, shown: protocol::Job) -> protocol::Job {
    protocol::Job {
        machine: home_of(job).map(|home| machine_to_wire(machines.of(home))),
        ..shown
    }
}

async fn several(jobs: &Jobs, machines: &Machines, found: &[Job]) -> Result<Vec<protocol::Job>, LogError> {
    let seen = jobs.seen_now(found).await?;
    let now = jobs.now();
    let shown = found.iter().zip(seen);
    Ok(shown
        .map(|(job, seen)| of_machine(machines, job, to_wire(job, &seen.output, seen.waiting, now)))
        .collect())
}

/// The home that runs a job, must run it, or ran it last.
fn home_of(job: &Job) -> Option<HomeId> {
    let state = &job.record.state;
    let home = match state {
        State::Running { attempt } => Some(&attempt.worker.home),
        State::Queued { .. } => job.record.facts.home.as_ref(),
        _ => last_ending(state)
            .and_then(|ending| ending.home.as_ref())
            .or(job.record.facts.home.as_ref()),
    };
    home?.parse().ok()
}

/// A page of jobs, newest first, with the job counts.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn list(
    jobs: &Jobs,
    machines: &Machines,
    query: ListQuery,
) -> Result<protocol::JobList, LogError> {
    // Fetch one more than requested to see whether there are more.
    let limit = query.limit.saturating_add(1);
    let mut found = jobs.list(ListQuery { limit, ..query }).await?;
    let page = query.limit as usize;
    let has_more = found.len() > page;
    found.truncate(page);
    let shown = several(jobs, machines, &found).await?;
    Ok(protocol::JobList {
        next_before: found
            .last()
            .filter(|_| has_more)
            .map(|oldest| oldest.id.to_string()),
        jobs: shown,
        counts: counts_to_wire(&jobs.counts()),
    })
}

/// A job with the state of its output, and the reason why it isn't running yet.
///
/// The log stores a record in which each state has only its own fields. The wire format is one flat list of fields, and
/// includes what is known besides the log.
pub(crate) fn to_wire(
    job: &Job,
    output: &OutputSummary,
    waiting: Option<WaitingFor>,
    now: UnixMs,
) -> protocol::Job {
    let record = &job.record;
    let facts = &record.facts;
    let ending = last_ending(&record.state);
    let (started, ran) = match (&record.state, ending) {
        (State::Running { attempt }, _) => (Some(attempt.claimed_at), Some(now.since(attempt.claimed_at))),
        (_, Some(ending)) => (
            Some(ending.started_at),
            Some(ending.ended_at.since(ending.started_at)),
        ),
        (_, None) => (None, None),
    };
    let said = ending.map(Said::by).unwrap_or_default();
    let lost = ending.and_then(|ending| ending.lost_output(output));
    protocol::Job {
        id: job.id.to_string(),
        state: record.state.name(),
        machine: None,
        version: job.version.get(),
        title: facts.title.clone(),
        handler: facts.handler.to_string(),
        priority: i64::from(facts.priority.level()),
        lane: facts.lane.as_ref().map(lane_to_wire),
        after: facts.after.iter().map(ToString::to_string).collect(),
        submitted_by: facts.submitted_by.clone(),
        submitted_at: written(record.submitted_at),
        started_at: started.map(written),
        ended_at: record.ended_at().map(written),
        ran_ms: ran.map(whole_ms),
        not_before: match record.state {
            State::Queued { not_before, .. } => not_before.map(written),
            _ => None,
        },
        deadline: facts.deadline.map(written),
        time_limit_ms: facts.time_limit_ms,
        attempts: record.attempts,
        max_retries: facts.retry.max_retries,
        interruptions: record.interruptions,
        if_interrupted: facts.if_interrupted,
        cancel: record.cancel.as_ref().map(|cancel| protocol::JobCancelRequest {
            by: cancel.by.clone(),
            why: cancel.why.clone(),
            at: written(cancel.at),
        }),
        reason: match record.state {
            State::Failed { reason, .. } => Some(reason.as_str().to_owned()),
            _ => None,
        },
        text: ending
            .map(|ending| ending.text.clone())
            .filter(|text| !text.is_empty()),
        exit: said.exit,
        killed: said.killed,
        killed_count: said.killed_count,
        input_cut: said.input_cut,
        confinement: said.confinement,
        progress: output.progress.clone(),
        output_bytes: output.bytes,
        cut_bytes: output.cut_bytes,
        output_lost: lost.map(str::to_owned),
        output_sequence: output.last_sequence.get(),
        foreground: facts.pool == Pool::Foreground,
        followed_by: facts.followed_by.map(|id| id.to_string()),
        finished: ending.and_then(|ending| finished_of(&ending.result)),
        waiting_for: waiting.map(|waiting| waiting_text(&waiting, facts.lane.as_ref(), now)),
        worker: match &record.state {
            State::Running { attempt } => Some(attempt.worker.home.to_string()),
            _ => None,
        },
        retry_of: facts.retry_of.map(|id| id.to_string()),
        idempotency_key: facts.idempotency_key.clone(),
        plan: said.plan,
        changeset: said.changeset,
        changed_files: said.files,
    }
}

/// An event of a job on its own. With all events, [`moments_to_wire`] can say more about it.
pub(crate) fn moment_to_wire(moment: &Moment) -> protocol::JobMoment {
    moments::told(moment, None)
}

/// A piece of output: text if it is text, and Base64 otherwise.
pub(crate) fn piece_to_wire(piece: &Piece) -> protocol::JobOutput {
    let (text, base64) = match std::str::from_utf8(&piece.bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(&piece.bytes))),
    };
    protocol::JobOutput {
        sequence: piece.sequence.get(),
        at: rfc3339_ms(piece.at_ms),
        channel: piece.channel,
        text,
        base64,
    }
}

pub(crate) fn counts_to_wire(counts: &Counts) -> protocol::JobCounts {
    protocol::JobCounts {
        queued: counts.queued,
        running: counts.running,
        max_workers: counts.max_workers,
        foreground: counts.foreground,
    }
}

/// A stored lane is valid; the lane of a request may have a limit of 0.
fn lane_to_wire(lane: &Lane) -> protocol::JobLane {
    protocol::JobLane {
        name: lane.name.to_string(),
        limit: lane.limit.get(),
    }
}

fn last_ending(state: &State) -> Option<&Ending> {
    match state {
        State::Queued { last, .. } => last.as_ref(),
        State::Running { .. } => None,
        State::Succeeded { ending } => Some(ending),
        State::Failed { ending, .. } | State::Cancelled { ending } => ending.as_ref(),
    }
}

/// The structured result of the command handler. Other handlers may have another one, or none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    exit: Option<protocol::JobExit>,
    killed: Vec<protocol::JobKilled>,
    killed_count: u64,
    input_cut: bool,
    confinement: Option<protocol::Confinement>,
    plan: Option<String>,
    changeset: Option<String>,
    files: Option<u64>,
}

impl Said {
    fn by(ending: &Ending) -> Self {
        Self::deserialize(&ending.result).unwrap_or_default()
    }
}

/// Why a job isn't running yet, as a text that follows "waits for".
pub(crate) fn waiting_text(waiting: &WaitingFor, lane: Option<&Lane>, now: UnixMs) -> String {
    match waiting {
        WaitingFor::Worker { running, limit } => {
            let (s, are) = if *limit == 1 { ("", "is") } else { ("s", "are") };
            format!("a place: {running} of {limit} job{s} {are} running")
        }
        WaitingFor::Time(moment) => format!("its start time, in {}", spoken(moment.since(now))),
        WaitingFor::Jobs(jobs) => match jobs.as_slice() {
            [only] => only.to_string(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => "other jobs".to_owned(),
        },
        WaitingFor::Lane => match lane {
            Some(lane) => format!("room in the lane {}", lane.name),
            None => "room in its lane".to_owned(),
        },
    }
}

/// Formats a duration: `350 ms`, `2.1 s`, `3 min 20 s`, `2 h 5 min`.
fn spoken(duration: Duration) -> String {
    let (ms, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests;
