//! Runs agents' commands as jobs: each is listed, keeps its output, and is stopped with all its processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::{Log, Sequence};
use jobs::{ChangeError, Ending, FailReason, Jobs, OutputItem, Priority, Requested, State};
use kernel::Scope;
use plans::Plans;
use protocol::{HomeId, JobChannel, JobId};
use sessions::{Shell, ShellEnd, ShellError, ShellOrder};
use tokio::sync::mpsc;

use crate::app::whole_ms;
use crate::http::consent::StartedFor;
use crate::jobs::Environments;
use crate::jobs::wire::to_new_job;

/// The reason for cancelling a job when its turn is cancelled.
const TURN_STOPPED: &str = "its turn was stopped";

#[derive(Clone)]
pub(crate) struct JobShell {
    pub(crate) jobs: Jobs,
    pub(crate) plans: Plans,
    pub(crate) log: Log,
    pub(crate) home_id: HomeId,
    pub(crate) environments: Environments,
    /// The base environment of a command that needs additional variables.
    pub(crate) environment: Arc<[(OsString, OsString)]>,
    /// Cancelled when the daemon has ended everything else.
    pub(crate) closing: Scope,
}

impl fmt::Debug for JobShell {
    // The environment may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("JobShell").finish_non_exhaustive()
    }
}

#[async_trait]
impl Shell for JobShell {
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
        if let Some(cause) = order.scope.cause() {
            return Err(failed(format!("the command was not run: {cause}")));
        }
        let job = self.submit(&order).await?;
        self.see_through(job, &order, output).await
    }
}

impl JobShell {
    async fn submit(&self, order: &ShellOrder) -> Result<JobId, ShellError> {
        let plan = self.plans.get(order.plan).await;
        let root = plan.map_err(|error| failed(error.to_string()))?.record.facts.root;
        let request = protocol::SubmitJob {
            command: protocol::JobCommand {
                shell: Some(order.line.clone()),
                directory: root.join(&order.directory).display().to_string(),
                plan: Some(order.plan.to_string()),
                environment: self.environment(&order.environment),
                ..protocol::JobCommand::default()
            },
            time_limit_ms: Some(whole_ms(order.timeout).max(1)),
            ..protocol::SubmitJob::default()
        };
        let place = (&self.log, self.home_id);
        let new = to_new_job(request, &order.actor, StartedFor::Anybody, place, &self.plans).await;
        let mut new = new.map_err(|problem| failed(problem.detail()))?;
        // An agent waits for it, so it has priority over background jobs.
        new.job.facts.priority = Priority::HIGHEST;
        // Waiting in the queue counts as well: the agent has no use for the result later.
        new.job.facts.deadline = Some(self.log.now().after(order.timeout));
        match self.environments.submit(&self.jobs, new).await {
            Ok(submitted) => Ok(submitted.job().id),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// The whole environment, if the command needs additional variables.
    fn environment(&self, more: &[(String, String)]) -> Option<BTreeMap<String, String>> {
        if more.is_empty() {
            return None;
        }
        let usual = self.environment.iter().filter_map(|(name, value)| {
            // A job can't store values that aren't UTF-8.
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        });
        Some(usual.chain(more.iter().cloned()).collect())
    }

    /// Forwards the output of a job until it has ended. A stop is requested once, and then this waits for the end.
    async fn see_through(
        &self,
        job: JobId,
        order: &ShellOrder,
        output: mpsc::Sender<Bytes>,
    ) -> Result<ShellEnd, ShellError> {
        let mut said = self.jobs.follow(job, Sequence::START, &self.closing);
        let mut wish = Wish::GoOn;
        loop {
            let item = tokio::select! {
                biased;
                _ = order.scope.wait(), if wish == Wish::GoOn => {
                    wish = Wish::Stop;
                    self.cancel(job, order).await?;
                    continue;
                }
                item = said.next() => item.map_err(|end| failed(format!("the job {job} cannot be followed: {end}")))?,
            };
            match item {
                OutputItem::Piece(piece) if piece.channel != JobChannel::Note => {
                    let bytes = Bytes::copy_from_slice(&piece.bytes);
                    tokio::select! {
                        biased;
                        // If the receiver is gone, nothing is lost: the job has all output.
                        _ = output.send(bytes) => {}
                        // A blocked receiver must not delay the stop.
                        _ = order.scope.wait() => {}
                    }
                }
                OutputItem::End(ended, _) => return end_of(job, &ended.record.state, order.timeout),
                OutputItem::Piece(_) | OutputItem::Progress { .. } | OutputItem::Resync { .. } => {}
            }
        }
    }

    async fn cancel(&self, job: JobId, order: &ShellOrder) -> Result<(), ShellError> {
        let request = Requested {
            by: order.actor.to_string(),
            why: TURN_STOPPED.to_owned(),
        };
        match self.jobs.cancel(job, request).await {
            // It has ended on its own, and the next item says so.
            Ok(_) | Err(ChangeError::Ended { .. }) => Ok(()),
            Err(error) => Err(failed(format!("the job {job} cannot be stopped: {error}"))),
        }
    }
}

/// Whether the command should still run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wish {
    GoOn,
    Stop,
}

/// How a command ended. A command that never ran is an error, because the agent couldn't fix its exit code.
fn end_of(job: JobId, state: &State, timeout: Duration) -> Result<ShellEnd, ShellError> {
    let ended = |exit_code: Option<i32>, text: String| Ok(ShellEnd { job, exit_code, text });
    match state {
        State::Queued { .. } | State::Running { .. } => Err(failed(format!("the job {job} has no end"))),
        State::Succeeded { .. } => ended(Some(0), "exit 0".to_owned()),
        State::Cancelled { .. } => ended(None, "cancelled".to_owned()),
        State::Failed {
            reason: FailReason::TimedOut | FailReason::DeadlinePassed,
            ..
        } => ended(None, format!("timed out after {}", in_words(timeout))),
        State::Failed {
            reason: FailReason::AttemptFailed,
            ending: Some(ending),
        } if ending.result.get("exit").is_some() => {
            let code = exit_code(ending);
            let text = match code {
                Some(code) => format!("exit {code}"),
                None => ending.text.clone(),
            };
            ended(code, text)
        }
        State::Failed { reason, ending } => {
            let said = ending.as_ref().map(|ending| ending.text.as_str());
            let why = said.filter(|text| !text.is_empty()).unwrap_or(reason.as_str());
            Err(failed(format!("the command was not run to its end: {why}")))
        }
    }
}

fn exit_code(ending: &Ending) -> Option<i32> {
    let code = ending.result["exit"]["code"].as_i64()?;
    i32::try_from(code).ok()
}

/// Formats a time limit for people.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

fn failed(text: impl Into<String>) -> ShellError {
    ShellError { text: text.into() }
}

#[cfg(test)]
mod tests {
    use eventlog::UnixMs;
    use serde_json::{Value, json};

    use super::*;

    fn ending(text: &str, result: Value) -> Ending {
        Ending {
            home: None,
            attempt: 1,
            started_at: UnixMs(1),
            ended_at: UnixMs(2),
            text: text.to_owned(),
            result,
            output: jobs::OutputEnd::default(),
        }
    }

    fn given_up(reason: FailReason, text: &str, result: Value) -> State {
        State::Failed {
            reason,
            ending: Some(ending(text, result)),
        }
    }

    #[test]
    fn an_end_of_a_job_is_one_of_a_command_if_the_command_ran() {
        let job = JobId::generate();
        let (minutes, ran) = (Duration::from_secs(120), json!({"exit": {"code": 3}}));
        for (state, expected) in [
            (
                State::Succeeded {
                    ending: ending("", json!({"exit": {"code": 0}})),
                },
                Ok((Some(0), "exit 0")),
            ),
            (
                given_up(FailReason::AttemptFailed, "exit code 3", ran.clone()),
                Ok((Some(3), "exit 3")),
            ),
            (
                given_up(
                    FailReason::AttemptFailed,
                    "signal 9 (SIGKILL)",
                    json!({"exit": {"signal": 9}}),
                ),
                Ok((None, "signal 9 (SIGKILL)")),
            ),
            (
                given_up(FailReason::TimedOut, "stopped", ran),
                Ok((None, "timed out after 2 min")),
            ),
            (
                given_up(FailReason::DeadlinePassed, "", Value::Null),
                Ok((None, "timed out after 2 min")),
            ),
            (State::Cancelled { ending: None }, Ok((None, "cancelled"))),
            (
                given_up(FailReason::AttemptFailed, "the sandbox is gone", Value::Null),
                Err("the command was not run to its end: the sandbox is gone"),
            ),
            (
                given_up(FailReason::Interrupted, "", json!({"exit": {}})),
                Err("the command was not run to its end: interrupted"),
            ),
        ] {
            let found = end_of(job, &state, minutes);
            let found = match &found {
                Ok(end) => Ok((end.exit_code, end.text.as_str())),
                Err(error) => Err(error.text.as_str()),
            };
            assert_eq!(found, expected, "{state:?}");
        }
    }

    #[test]
    fn a_time_limit_is_told_as_people_say_it() {
        for (time, expected) in [
            (Duration::from_millis(250), "250 ms"),
            (Duration::from_secs(90), "90 s"),
            (Duration::from_secs(600), "10 min"),
        ] {
            assert_eq!(in_words(time), expected);
        }
    }
}
