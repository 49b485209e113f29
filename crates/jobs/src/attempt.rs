//! One attempt of a job: the work, its limits, and how it is stopped.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use eventlog::{BlobId, Lease, Log, LogError, Sequence};
use futures_util::FutureExt;
use kernel::{CancellationToken, Cause, Clock, Deadline, Scope};
use process::Tasks;
use protocol::JobId;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    handler::{AttemptOutcome, AttemptVerdict, Handler, Work},
    history,
    job::{OutputEnd, Pool},
    message::{Finished, Message},
    output::{Output, OutputOptions},
    state::{End, StopCause},
};
use eventlog::WallClock;

/// Stops an attempt. Clones refer to the same attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopHandle {
    token: CancellationToken,
    /// Cancelled only when the worker has lost its lease. Until then output is written, even after a stop.
    lost: CancellationToken,
    /// The reason; the first one counts. It is set before the token is cancelled.
    why: Arc<OnceLock<StopReason>>,
}

/// Why an attempt is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StopReason {
    /// A cause that is stored in the job.
    Cause(StopCause),
    /// The worker has lost its lease: the job no longer belongs to it, and nothing is written.
    LeaseLost,
}

impl StopHandle {
    /// Stops the attempt, unless it is already being stopped.
    pub(crate) fn now(&self, why: StopReason) {
        if why == StopReason::LeaseLost {
            self.lost.cancel(Cause::new("the worker", "it lost its lease"));
        }
        if self.why.set(why).is_err() {
            return;
        }
        let (who, text) = match why {
            StopReason::Cause(StopCause::Cancelled) => ("a user", "the job was cancelled"),
            StopReason::Cause(StopCause::TimeLimit) => ("the time limit", "the attempt took too long"),
            StopReason::Cause(StopCause::Deadline) => ("the deadline", "the job took too long"),
            StopReason::Cause(StopCause::Draining) => ("the daemon", "it ends"),
            StopReason::LeaseLost => ("the worker", "it lost its lease"),
        };
        self.token.cancel(Cause::new(who, text));
    }

    /// Whether the worker has lost the lease under which the attempt began.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    fn why(&self) -> Option<StopReason> {
        self.why.get().copied()
    }
}

/// An attempt that was claimed and is about to start.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) job: JobId,
    pub(crate) number: u32,
    pub(crate) title: String,
    pub(crate) submitted_by: String,
    pub(crate) after: Vec<JobId>,
    pub(crate) pool: Pool,
    /// The payload of the job, if it is in memory.
    pub(crate) payload: Option<Payload>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) stop: StopHandle,
    pub(crate) time_limit: Deadline,
    pub(crate) deadline: Deadline,
    pub(crate) lease: Option<Lease>,
    pub(crate) output_limit_bytes: u64,
}

/// What a job was submitted with.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) blobs: Vec<BlobId>,
}

/// The pause before the payload is read again. While it can't connect, the log itself waits longer.
const READ_AGAIN: Duration = Duration::from_millis(100);

impl Payload {
    /// Reads the payload, and retries while the log can't be reached and the payload is still needed.
    async fn read_through(
        log: &Log,
        job: JobId,
        (clock, wanted): (&Arc<dyn Clock>, &Scope),
    ) -> Result<Option<Self>, LogError> {
        loop {
            match Self::read(log, job).await {
                Err(error) if error.is_outage() && !wanted.is_cancelled() => {
                    tracing::debug!(%error, %job, "an attempt waits for the log to become reachable");
                }
                read => return read,
            }
            tokio::select! {
                _ = wanted.wait() => {}
                () = Deadline::after(clock, READ_AGAIN).passed() => {}
            }
        }
    }

    /// Reads the payload from the first event of the job.
    pub(crate) async fn read(log: &Log, job: JobId) -> Result<Option<Self>, LogError> {
        let page = log.read(&history::job_stream(job), Sequence::START, 1).await?;
        let submission = page.events.first().and_then(history::submission_of);
        Ok(submission.map(|submission| Self {
            bytes: submission.payload,
            blobs: submission.blobs,
        }))
    }
}

impl Attempt {
    /// Does the work, and reports how it went.
    pub(crate) async fn run(
        mut self,
        log: Log,
        (wall, tasks): (WallClock, Tasks),
        report: mpsc::Sender<Message>,
    ) {
        let output = Output::new(OutputOptions {
            log: log.clone(),
            lease: self.lease.take(),
            lease_scope: self.stop.lost.scope(),
            job: self.job,
            attempt: self.number,
            limit_bytes: self.output_limit_bytes,
            tasks,
            clock: Arc::clone(wall.clock()),
        });
        let (job, number, pool, stop) = (self.job, self.number, self.pool, self.stop.clone());
        let outcome = self.work(log, wall.clock(), output.clone()).await;
        // The outcome is always reported; the log decides whether this worker may still store it.
        let output = match output.finish().await {
            Ok(summary) => OutputEnd {
                bytes: summary.bytes,
                lost: None,
            },
            Err(error) => {
                tracing::warn!(%error, %job, "could not write the last output of a job");
                OutputEnd {
                    bytes: 0,
                    lost: Some(with_causes(&error)),
                }
            }
        };
        let end = match (outcome.verdict, stop.why()) {
            (_, Some(StopReason::LeaseLost)) => None,
            (AttemptVerdict::Succeeded, _) => Some(End::Succeeded),
            (AttemptVerdict::Failed, _) => Some(End::Failed),
            (AttemptVerdict::FailedPermanently, _) => Some(End::FailedPermanently),
            (AttemptVerdict::Stopped, Some(StopReason::Cause(cause))) => Some(End::Stopped(cause)),
            // The handler reports a stop that no one requested, so it gave up on its own.
            (AttemptVerdict::Stopped, None) => Some(End::Failed),
        };
        let finished = Finished {
            job,
            attempt: number,
            pool,
            end,
            text: outcome.text,
            result: history::bounded_result(outcome.result),
            output,
        };
        // Only fails when the service is gone, and then there is no one left to store it.
        drop(report.send(Message::Finished(Box::new(finished))).await);
    }

    /// Runs the handler, and stops it when its time is up.
    async fn work(self, log: Log, clock: &Arc<dyn Clock>, output: Output) -> AttemptOutcome {
        let payload = match self.payload {
            Some(payload) => Ok(Some(payload)),
            None => Payload::read_through(&log, self.job, (clock, &self.stop.token.scope())).await,
        };
        let payload = match payload {
            Ok(Some(payload)) => payload,
            Ok(None) => return hopeless("what the job was submitted with is not there".to_owned()),
            Err(_) if self.stop.why().is_some() => return stopped(),
            Err(error) => return failed(format!("what the job was submitted with cannot be read: {error}")),
        };
        let work = Work {
            job: self.job,
            attempt: self.number,
            title: self.title,
            submitted_by: self.submitted_by,
            payload: payload.bytes,
            blobs: payload.blobs,
            after: self.after,
            scope: self.stop.token.scope(),
            output,
        };
        if work.scope.is_cancelled() {
            return stopped();
        }
        let (mut time_limit, mut deadline) = (self.time_limit.passed(), self.deadline.passed());
        let mut running = std::pin::pin!(AssertUnwindSafe(self.handler.run(work)).catch_unwind());
        let done = loop {
            tokio::select! {
                biased;
                done = &mut running => break done,
                () = &mut time_limit, if self.stop.why().is_none() => {
                    self.stop.now(StopReason::Cause(StopCause::TimeLimit));
                }
                () = &mut deadline, if self.stop.why().is_none() => {
                    self.stop.now(StopReason::Cause(StopCause::Deadline));
                }
            }
        };
        done.unwrap_or_else(|panic| failed(format!("the handler panicked: {}", words_of(&*panic))))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words")
}

fn outcome(verdict: AttemptVerdict, text: String) -> AttemptOutcome {
    AttemptOutcome {
        verdict,
        text,
        result: Value::Null,
    }
}

fn hopeless(text: String) -> AttemptOutcome {
    outcome(AttemptVerdict::FailedPermanently, text)
}

fn failed(text: String) -> AttemptOutcome {
    outcome(AttemptVerdict::Failed, text)
}

fn stopped() -> AttemptOutcome {
    outcome(AttemptVerdict::Stopped, String::new())
}
