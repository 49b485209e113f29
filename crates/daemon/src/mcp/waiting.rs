//! Waits for a job, up to a limit. To wait longer, the client calls again with the job's id.

use std::time::Duration;

use eventlog::Sequence;
use kernel::Deadline;
use protocol::{Job, JobChannel, JobId, JobState};
use sessions::tools::{ANSWER_LIMIT_BYTES, Excerpt};

use super::call::Call;
use super::error::ToolError;
use crate::app::App;
use crate::http::Problem;
use crate::http::jobs::output::OutputForm;
use crate::http::pieces::Source as _;
use crate::jobs::acts;

/// How long a tool waits by default: most commands are done by then, and clients don't give up that early.
const USUAL_WAIT_SECONDS: u64 = 20;
/// The longest wait. Clients give up after a minute or two.
pub(super) const LONGEST_WAIT_SECONDS: u64 = 110;
/// How often a client that asks for progress gets an update.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long a single wait for the job may take.
const ONE_LOOK: Duration = Duration::from_secs(60);
/// How much of a job's output to include in an answer. The rest is for the text around it.
const OUTPUT_LIMIT_BYTES: usize = ANSWER_LIMIT_BYTES - 2 * 1024;

#[derive(Clone, Debug)]
pub(super) enum Waited {
    Ended(Box<Job>),
    /// The time is up.
    StillRunning(Box<Job>),
    /// The client stopped waiting.
    Interrupted,
}

/// The deadline for the requested time.
pub(super) fn patience(call: &Call<'_>, seconds: Option<u64>) -> Deadline {
    let seconds = seconds.unwrap_or(USUAL_WAIT_SECONDS).min(LONGEST_WAIT_SECONDS);
    Deadline::after(&call.app.clock, Duration::from_secs(seconds))
}

/// Waits until a job has ended, the time is up, or the client stops waiting.
pub(super) async fn wait_for(call: &Call<'_>, id: JobId, patience: &Deadline) -> Result<Waited, ToolError> {
    let began = call.app.clock.now();
    loop {
        let left = patience.remaining().unwrap_or_default();
        let step = match call.wants_progress() {
            true => left.min(TOLD_EVERY),
            false => left.min(ONE_LOOK),
        };
        let job = tokio::select! {
            job = acts::show(call.app, id, Some(step)) => job?,
            () = call.interrupted() => return Ok(Waited::Interrupted),
        };
        if job.state.is_terminal() {
            return Ok(Waited::Ended(Box::new(job)));
        }
        if patience.has_passed() {
            return Ok(Waited::StillRunning(Box::new(job)));
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

/// The output of a job so far, up to a limit.
pub(super) async fn output_excerpt(app: &App, id: JobId, limit: usize) -> Result<Excerpt, Problem> {
    let form = OutputForm::Bytes(vec![JobChannel::Stdout, JobChannel::Stderr]);
    let mut output = acts::output(app, id, Sequence::START, form).await?;
    let mut excerpt = Excerpt::new(limit);
    while let Some((rest, piece)) = output.next().await {
        excerpt.add(&piece.map_err(Problem::internal)?);
        output = rest;
    }
    Ok(excerpt)
}

/// The same, sized for an answer.
pub(super) async fn output_of(call: &Call<'_>, id: JobId) -> Result<String, ToolError> {
    let excerpt = output_excerpt(call.app, id, OUTPUT_LIMIT_BYTES).await?;
    let mut text = excerpt.text(&format!(
        "the full output is in the resource tidelock://jobs/{id}/logs"
    ));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The state of a job, in one line.
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
