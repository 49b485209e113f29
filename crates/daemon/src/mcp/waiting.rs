//! Waiting for a job, for a while: whoever waits longer than that comes back with its id.

use std::time::Duration;

use kernel::Deadline;
use protocol::{Job, JobState};

use super::bounds::{Excerpt, TEXT_LIMIT_BYTES};
use super::call::Call;
use super::error::ToolError;
use crate::app::whole_ms;

/// How long a tool waits if it is not told: most commands are done by then, and no client has lost its patience.
pub(super) const USUAL_WAIT_SECONDS: u64 = 20;
/// How long it waits at most. Clients give up after a minute or two.
pub(super) const LONGEST_WAIT_SECONDS: u64 = 110;
/// How often a client that wants to know is told how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long one look waits: as long as the route allows.
const ONE_LOOK: Duration = Duration::from_secs(60);
/// How much of a job's output stands in an answer. The rest of the room is for what is said about it.
pub(super) const OUTPUT_LIMIT_BYTES: usize = TEXT_LIMIT_BYTES - 2 * 1024;

/// How a wait ended.
#[derive(Clone, Debug)]
pub(super) enum Waited {
    /// With the job.
    Ended(Box<Job>),
    /// With the patience.
    StillThere(Box<Job>),
    /// The client does not wait any more.
    Interrupted,
}

/// How long to wait, from what was asked for.
pub(super) fn patience(call: &Call<'_>, seconds: Option<u64>) -> Deadline {
    let seconds = seconds.unwrap_or(USUAL_WAIT_SECONDS).min(LONGEST_WAIT_SECONDS);
    Deadline::after(&call.app.clock, Duration::from_secs(seconds))
}

/// Waits until a job has ended, the time is over, or nobody waits any more.
pub(super) async fn wait_for(call: &Call<'_>, id: &str, patience: &Deadline) -> Result<Waited, ToolError> {
    let began = call.app.clock.now();
    loop {
        let left = patience.remaining().unwrap_or_default();
        let step = match call.wants_progress() {
            true => left.min(TOLD_EVERY),
            false => left.min(ONE_LOOK),
        };
        let path = format!("/v1/jobs/{id}?wait_ms={}", whole_ms(step));
        let job: Job = tokio::select! {
            job = call.get(&path) => job?,
            () = call.interrupted() => return Ok(Waited::Interrupted),
        };
        if job.state.is_terminal() {
            return Ok(Waited::Ended(Box::new(job)));
        }
        if patience.has_passed() {
            return Ok(Waited::StillThere(Box::new(job)));
        }
        let elapsed = call.app.clock.now().saturating_duration_since(began);
        call.progress(elapsed.as_secs_f64(), doing(&job)).await;
    }
}

/// What a job is doing, in one line.
fn doing(job: &Job) -> String {
    let progress = job.progress.as_ref().filter(|progress| !progress.text.is_empty());
    match (progress, &job.waiting_for) {
        (Some(progress), _) => progress.text.clone(),
        (None, Some(waiting_for)) => format!("waiting: {waiting_for}"),
        (None, None) => format!("{}, {} bytes of output so far", job.title, job.output_bytes),
    }
}

/// What a job has written, as much as fits into an answer.
pub(super) async fn output_of(call: &Call<'_>, id: &str) -> Result<String, ToolError> {
    let path = format!("/v1/jobs/{id}/output");
    let excerpt = Excerpt::new(OUTPUT_LIMIT_BYTES);
    let excerpt = call.inside.excerpt(&call.client.actor, &path, excerpt).await?;
    let text = excerpt.text(&format!(
        "the full output is in the resource tidelock://jobs/{id}/logs"
    ));
    Ok(match text.is_empty() || text.ends_with('\n') {
        true => text,
        false => format!("{text}\n"),
    })
}

/// How a job stands, in one line.
pub(super) fn standing(job: &Job) -> String {
    let how = match (job.state, &job.exit) {
        (JobState::Queued, _) => match &job.waiting_for {
            Some(what) => format!("is queued: {what}"),
            None => "is queued".to_owned(),
        },
        (JobState::Running, _) => format!("has been running for {} s", job.ran_ms.unwrap_or_default() / 1000),
        (JobState::Succeeded, _) => "succeeded".to_owned(),
        (JobState::Failed, exit) => {
            let code = exit
                .and_then(|exit| exit.code)
                .map(|code| format!(" with exit code {code}"));
            let signal = exit
                .and_then(|exit| exit.signal)
                .map(|signal| format!(" by signal {signal}"));
            let reason = job.reason.as_deref().filter(|reason| *reason != "attempt_failed");
            let reason = reason.map(|reason| format!(" ({reason})"));
            format!(
                "failed{}{}",
                code.or(signal).unwrap_or_default(),
                reason.unwrap_or_default()
            )
        }
        (JobState::Cancelled, _) => match &job.cancel {
            Some(cancel) => format!("was cancelled by {}", cancel.by),
            None => "was cancelled".to_owned(),
        },
    };
    let took = match job.state.is_terminal() {
        true => job
            .ran_ms
            .map(|ran| format!(" after {}.{:03} s", ran / 1000, ran % 1000)),
        false => None,
    };
    format!("{} {how}{}", job.id, took.unwrap_or_default())
}
