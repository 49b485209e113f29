//! Waits until a job has ended.

use std::time::{Duration, Instant};

use protocol::{Job, JobState};
use serde_json::Value;

use super::outcome::{ended_text, exit_of};
use super::path;
use crate::cli::WaitArguments;
use crate::client::{Client, ClientError, Interrupted, Interrupts};
use crate::commands::ids::JOB;
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::printable;
use crate::units::format_duration;

/// How long each request asks the daemon to wait. The daemon allows at most a minute.
const ROUND: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(10);
/// How long the daemon may be unreachable: long enough for one to end and another one to start.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

pub(super) fn run(arguments: &WaitArguments, client: &Client) -> Result<Report, Failure> {
    let id = JOB.find(&arguments.job.job, client)?;
    let answer = until_ended(&id, arguments.timeout, client)?;
    let job: Job = printable(&answer)?;
    if !job.state.is_terminal() {
        let after = format_duration(arguments.timeout.unwrap_or_default());
        let message = format!("{id} hasn't ended after {after}");
        return Err(Failure::new(Exit::Failed, "wait_timeout", message)
            .advise("it keeps running; wait longer, or cancel it with `tidelock job cancel`"));
    }
    let ran = job.ran_ms.map_or_else(String::new, |ms| {
        format!(" after {}", format_duration(Duration::from_millis(ms)))
    });
    let text = match job.state {
        JobState::Succeeded if job.output_lost.is_none() => format!("{id} succeeded{ran}\n"),
        _ => format!("{id} {}\n", ended_text(&job)),
    };
    Ok(Report::success(answer, text).with_exit(exit_of(&job, Interrupted::No)))
}

/// The job when it has ended, or when the time is up.
pub(super) fn until_ended(id: &str, timeout: Option<Duration>, client: &Client) -> Result<Value, Failure> {
    let give_up_at = timeout.map(|timeout| Instant::now() + timeout);
    // Report a missing job or daemon before the wait begins.
    let mut answer = client.fetch(&path(id, ""))?;
    client.stay();
    let mut silent_since = None;
    loop {
        let job: Job = printable(&answer)?;
        let left = give_up_at.map(|at| at.saturating_duration_since(Instant::now()));
        if job.state.is_terminal() || left == Some(Duration::ZERO) {
            return Ok(answer);
        }
        let round = left.map_or(ROUND, |left| left.min(ROUND));
        let rest = format!("?wait_ms={}", round.as_millis());
        match client.get_within(&path(id, &rest), round + GRACE) {
            Ok(newer) => {
                silent_since = None;
                answer = newer;
            }
            Err(error) if may_come_back(&error) => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= PATIENCE {
                    return Err(Failure::from(error).advise(format!(
                        "`tidelock job show {id}` starts a daemon and shows what happened to the job"
                    )));
                }
                client.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether another daemon may follow one that ended during the wait.
fn may_come_back(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Broken { .. } | ClientError::Timeout { .. } => true,
        ClientError::Refused(refusal) => refusal.is_about_the_daemons_end(),
        _ => false,
    }
}
