//! The public interface of the service.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use eventlog::{
    Bookmark, EntityRecord, HeadsOrder, HeadsQuery, Log, LogError, Sequence, StoredHead, UnixMs, Updated,
    WallClock, Write,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slot};
use process::Tasks;
use protocol::{BootId, HomeId, JobId, JobsCollected};
use tokio::sync::{mpsc, oneshot};

use crate::answers::{Counts, JobChanges, ListQuery, Requested, SeenNow, Submitted, WaitingFor};
use crate::attempt::Payload;
use crate::collect::{self, GcPolicy};
use crate::dispatch::{Dispatcher, DispatcherParts};
use crate::error::{ChangeError, OpenJobsError, SubmitError};
use crate::handler::Handler;
use crate::history::{self, Moment};
use crate::job::{Job, NewJob, Record, State};
use crate::message::Message;
use crate::output::{self, FollowEnd, OutputSummary, OutputTail};
use crate::queue::QUEUE_LIMIT;
use crate::remote_watch::RemoteWatcher;
use crate::state::{self, Change, Refused, Step};
use crate::worker::WorkerIdentity;
use crate::{recover, submit, wait};

/// How many messages may wait for the dispatcher. It handles all of them between two commits. When the queue is
/// full, senders wait.
const INBOX: usize = 1024;
/// How many times a cancellation is retried because the job has changed in the meantime. A job changes only a few
/// times, so this is never reached.
const CANCEL_TRIES: usize = 64;
/// How many events of a history are read at a time.
const HISTORY_PAGE: u32 = 256;
/// How many reads of one request run concurrently: enough to hide the latency of a database, and no more than it
/// has connections to spare.
const READS_AT_ONCE: usize = 8;

/// What the service needs.
#[derive(Debug)]
pub struct JobsOptions {
    /// Stores the jobs.
    pub log: Log,
    /// Whether other daemons use the same log.
    pub sharing: Sharing,
    /// The home of this daemon.
    pub home_id: HomeId,
    /// The boot id of this daemon.
    pub boot_id: BootId,
    /// The handlers by name.
    pub handlers: BTreeMap<Arc<str>, Arc<dyn Handler>>,
    /// How many jobs run at once.
    pub max_workers: usize,
    /// How long a worker may be silent before others take over its jobs.
    pub lease: Duration,
    /// Runs the tasks of the service.
    pub tasks: Tasks,
    /// The time source.
    pub clock: Arc<dyn Clock>,
}

/// Whether other daemons use the same log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sharing {
    /// No other daemon: a running job that isn't ours has lost its worker.
    Alone,
    /// Others use it too: their jobs belong to them until their lease expires.
    WithOthers,
}

/// The jobs of a log. Clones refer to the same service. When the last one is dropped, nothing more is claimed,
/// but running attempts aren't stopped; see [`Jobs::drain`].
#[derive(Clone, Debug)]
pub struct Jobs {
    shared: Arc<JobsShared>,
}

#[derive(Debug)]
struct JobsShared {
    log: Log,
    wall: WallClock,
    handlers: Vec<Arc<str>>,
    inbox: mpsc::Sender<Message>,
    counts: Slot<Counts>,
    tasks: Tasks,
    /// Cancelled when no more jobs are accepted.
    closing: CancellationToken,
}

impl Jobs {
    /// The current time, shared by all users of these jobs.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.shared.wall.now()
    }

    /// Opens the jobs of a log. When this returns, no job of this home (or of the whole log, if it isn't shared)
    /// is in state running with a dead worker: such jobs have been queued again or failed.
    ///
    /// *Cancel safety*: if the future is dropped, some jobs are interrupted; the next start does the rest.
    ///
    /// # Errors
    /// If the log can't be read or written.
    pub async fn open(options: JobsOptions) -> Result<Self, OpenJobsError> {
        let wall = options.log.wall_clock(options.clock);
        let (home, boot) = (options.home_id.to_string(), options.boot_id.to_string());
        let found = recover::recover(&options.log, options.sharing, &home).await?;
        let counts = Slot::new(Counts::default());
        let (inbox, messages) = mpsc::channel(INBOX);
        let closing = CancellationToken::new();
        let identity = WorkerIdentity::new(options.sharing, home, boot.clone());
        let remote_watch = RemoteWatcher {
            log: options.log.clone(),
            wall: wall.clone(),
            home: Arc::clone(identity.home()),
            boot,
            counts: counts.clone(),
            report: inbox.downgrade(),
            scope: closing.scope(),
            held_before: HashMap::new(),
            full_before: HashMap::new(),
        };
        let shared = JobsShared {
            log: options.log.clone(),
            wall: wall.clone(),
            handlers: options.handlers.keys().cloned().collect(),
            inbox: inbox.clone(),
            counts: counts.clone(),
            tasks: options.tasks.clone(),
            closing,
        };
        let mut dispatcher = Dispatcher::new(DispatcherParts {
            log: options.log,
            sharing: options.sharing,
            identity,
            handlers: options.handlers,
            max_workers: options.max_workers,
            lease: options.lease,
            tasks: options.tasks.clone(),
            wall,
            counts,
            inbox: messages,
            report: inbox.downgrade(),
        });
        dispatcher.restore(found);
        options.tasks.spawn("jobs", dispatcher.run());
        if options.sharing == Sharing::WithOthers {
            options.tasks.spawn("job-remote-watch", remote_watch.run());
        }
        let jobs = Self {
            shared: Arc::new(shared),
        };
        // Jobs that only seem to run are corrected before the first request.
        jobs.idle().await;
        jobs.tell(Message::Open).await;
        Ok(jobs)
    }

    /// Submits a job. When this returns, it is on disk.
    ///
    /// *Cancel safety*: if the future is dropped, the job is still submitted, if possible, and runs; with an
    /// idempotency key it can safely be submitted again.
    ///
    /// # Errors
    /// See [`SubmitError`]; the job wasn't accepted.
    pub async fn submit(&self, new: NewJob) -> Result<Submitted, SubmitError> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(SubmitError::Draining);
        }
        if !shared.handlers.contains(&new.facts.handler) {
            let handler = new.facts.handler.to_string();
            return Err(SubmitError::NoHandler { handler });
        }
        if shared.counts.read().state.queued >= QUEUE_LIMIT as u64 {
            return Err(SubmitError::Full { limit: QUEUE_LIMIT });
        }
        let jobs = self.clone();
        let taking = async move { jobs.take(new).await };
        let taken = shared.tasks.to_the_end("job-submit", taking).await;
        taken.unwrap_or(Err(SubmitError::Draining))
    }

    /// Writes a job to disk and informs the dispatcher, which wouldn't learn of it otherwise.
    async fn take(&self, new: NewJob) -> Result<Submitted, SubmitError> {
        let shared = &self.shared;
        let taken = submit::submit(&shared.log, new, shared.wall.now()).await?;
        if let Submitted::New(job) = &taken.submitted {
            let job = Box::new(job.clone());
            let payload = taken.payload;
            self.tell(Message::Submitted { job, payload }).await;
        }
        if let Some((follower, payload)) = taken.follower {
            let job = Box::new(follower);
            self.tell(Message::Submitted { job, payload }).await;
        }
        Ok(taken.submitted)
    }

    /// The write that submits a job which belongs to something else and starts when that has ended. It must be part of
    /// the commit that ends it. [`Jobs::start_submitted`] starts the job after that commit; otherwise the next daemon
    /// does. Like every follower, it isn't listed.
    ///
    /// # Errors
    /// The job isn't valid.
    pub fn submission(&self, new: NewJob) -> Result<Write, SubmitError> {
        submit::submission(new, self.shared.wall.now())
    }

    /// Starts a job that another caller's commit submitted. If that commit wasn't made, or the job has already
    /// started, nothing happens.
    ///
    /// *Cancel safety*: it can be called again.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn start_submitted(&self, id: JobId) -> Result<(), LogError> {
        let job = Job::read(&self.shared.log, id).await?;
        let queued = job.filter(|job| matches!(job.record.state, State::Queued { .. }));
        if let Some(job) = queued {
            self.tell(Message::QueuedFound(vec![job])).await;
        }
        Ok(())
    }

    /// The job with this id, if it exists.
    ///
    /// *Cancel safety*: it only reads.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn get(&self, id: JobId) -> Result<Option<Job>, LogError> {
        Ok(Job::read(&self.shared.log, id).await?)
    }

    /// Jobs, newest first. Followers, which only handle the end of another job, are left out; that job names
    /// them.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<Job>, LogError> {
        let log = &self.shared.log;
        let wanted = query.limit as usize;
        let mut pages = log.pages(HeadsQuery {
            kind: Record::KIND.into(),
            status: query.state.map(|state| state.as_str().into()),
            after: query.before.map(history::job_stream),
            limit: query.limit,
            order: HeadsOrder::NewestFirst,
        });
        let mut found: Vec<Job> = Vec::new();
        // Jobs that can't be read are left out. A page that is short because of them would look like the last
        // one.
        while found.len() < wanted
            && let Some(page) = pages.next().await?
        {
            let jobs = page.iter().filter_map(|stored| self.of_head(stored));
            found.extend(jobs.filter(|job| !job.record.facts.is_follower()));
        }
        found.truncate(wanted);
        Ok(found)
    }

    /// The summary of a job's output.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn output_summary(&self, id: JobId) -> Result<OutputSummary, LogError> {
        output::summary(&self.shared.log, id).await
    }

    /// The payload that the job was submitted with.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn payload(&self, id: JobId) -> Result<Option<Arc<[u8]>>, LogError> {
        let payload = Payload::read(&self.shared.log, id).await?;
        Ok(payload.map(|payload| payload.bytes))
    }

    /// Why a queued job doesn't run yet; `None` if it isn't queued here.
    pub async fn waiting_for(&self, id: JobId) -> Option<WaitingFor> {
        self.all_waiting_for(vec![id]).await.pop().flatten()
    }

    /// Like [`waiting_for`](Self::waiting_for), for several jobs in order; empty if the service has ended.
    async fn all_waiting_for(&self, ids: Vec<JobId>) -> Vec<Option<WaitingFor>> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Why { ids, answer }).await;
        // Without an answer, nothing waits here anymore.
        answered.await.unwrap_or_default()
    }

    /// The current view of some jobs, besides what is stored in them. Jobs that haven't started need no read of
    /// the log, and all of them together need one question to the queue.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn seen_now(&self, jobs: &[Job]) -> Result<Vec<SeenNow>, LogError> {
        let begun: Vec<Option<JobId>> = jobs
            .iter()
            .map(|job| Some(job.id).filter(|_| job.record.attempts > 0))
            .collect();
        let output = |begun: Option<JobId>| async move {
            match begun {
                Some(id) => match self.output_summary(id).await {
                    // The output is quarantined, which must not hide the job.
                    Err(LogError::Corrupt(_)) => Ok(OutputSummary::default()),
                    output => output,
                },
                None => Ok(OutputSummary::default()),
            }
        };
        let outputs: Vec<OutputSummary> = stream::iter(begun.into_iter().map(output))
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await?;
        let queued = jobs
            .iter()
            .filter(|job| matches!(job.record.state, State::Queued { .. }));
        let queued: Vec<JobId> = queued.map(|job| job.id).collect();
        let waiting = match queued.is_empty() {
            true => Vec::new(),
            false => self.all_waiting_for(queued.clone()).await,
        };
        let mut waiting: HashMap<JobId, Option<WaitingFor>> = queued.into_iter().zip(waiting).collect();
        let seen = jobs.iter().zip(outputs).map(|(job, output)| SeenNow {
            output,
            waiting: waiting.remove(&job.id).flatten(),
        });
        Ok(seen.collect())
    }

    /// The job in a head that the caller already has; `None` if it can't be read.
    #[must_use]
    pub fn of_head(&self, stored: &StoredHead) -> Option<Job> {
        Job::of_head(&self.shared.log, stored).ok()
    }

    /// What has happened to a job after a position, oldest first.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn timeline(&self, id: JobId, after: Sequence) -> Result<Vec<Moment>, LogError> {
        let stream = history::job_stream(id);
        let (mut moments, mut after) = (Vec::new(), after);
        loop {
            let page = self.shared.log.read(&stream, after, HISTORY_PAGE).await?;
            moments.extend(page.events.iter().filter_map(history::moment));
            match page.events.last() {
                Some(last) if last.sequence < page.last => after = last.sequence,
                _ => return Ok(moments),
            }
        }
    }

    /// Waits until a job has ended. If the deadline passes first, returns the job in its current state.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    ///
    /// # Errors
    /// If there is no such job, the scope is cancelled, or the log can't be read.
    pub async fn wait(&self, id: JobId, deadline: &Deadline, scope: &Scope) -> Result<Job, FollowEnd> {
        let ended = wait::ended(&self.shared.log, id, scope);
        let mut ended = std::pin::pin!(ended);
        tokio::select! {
            biased;
            ended = &mut ended => ended,
            () = deadline.clone().passed() => self.get(id).await?.ok_or(FollowEnd::NotFound),
        }
    }

    /// Follows the output of a job from a position on, until the job has ended.
    #[must_use]
    pub fn follow(&self, id: JobId, after: impl Into<Bookmark>, scope: &Scope) -> OutputTail {
        OutputTail::new(&self.shared.log, id, after.into(), scope)
    }

    /// Cancels a job. A queued job is cancelled when this returns. A running job is being stopped: the request is
    /// on disk, and its worker honors it even if it learns of it late.
    ///
    /// *Cancel safety*: if the future is dropped, the job is still cancelled.
    ///
    /// # Errors
    /// See [`ChangeError`]; an ended job isn't changed.
    pub async fn cancel(&self, id: JobId, request: Requested) -> Result<Job, ChangeError> {
        let jobs = self.clone();
        let cancelling = async move { jobs.request_cancel(id, request).await };
        let done = self.shared.tasks.to_the_end("job-cancel", cancelling).await;
        done.unwrap_or(Err(ChangeError::Log(LogError::Closed)))
    }

    /// Writes the request to disk and informs the dispatcher.
    async fn request_cancel(&self, id: JobId, request: Requested) -> Result<Job, ChangeError> {
        let cancelled = Job::update(&self.shared.log, id, CANCEL_TRIES, |job| {
            let job = job.ok_or(ChangeError::NotFound { id })?;
            let change = Change::Cancel {
                by: request.by.clone(),
                why: request.why.clone(),
                now: self.shared.wall.now(),
            };
            match state::apply(&job.record, change) {
                Ok(Step { record, happenings }) => Ok(Some(eventlog::Change {
                    events: happenings,
                    ..eventlog::Change::new(record)
                })),
                Err(Refused::AlreadyCancelling) => Ok(None),
                Err(_) => Err(ChangeError::Ended {
                    job: Box::new(job.clone()),
                }),
            }
        });
        let cancelled = cancelled.await?;
        if let Updated::Written(job) = &cancelled {
            self.tell(Message::Cancelled(Box::new(job.clone()))).await;
        }
        cancelled.entity().ok_or(ChangeError::NotFound { id })
    }

    /// Submits a job that has ended again, as a new job with another id. The old one doesn't change.
    ///
    /// *Cancel safety*: if the future is dropped, the new job may or may not be submitted.
    ///
    /// # Errors
    /// See [`ChangeError`]; no new job was accepted.
    pub async fn retry(&self, id: JobId, new_id: JobId, by: &str) -> Result<Job, ChangeError> {
        let job = self.get(id).await?.ok_or(ChangeError::NotFound { id })?;
        if !job.record.state.is_terminal() {
            return Err(ChangeError::NotEnded { job: Box::new(job) });
        }
        let payload = Payload::read(&self.shared.log, id).await?;
        let payload = payload.ok_or(ChangeError::Forgotten { id })?;
        let mut facts = job.record.facts;
        let then = match facts.followed_by.take() {
            Some(follower) => self.resubmit_follower(follower, by).await?,
            None => None,
        };
        // The deadline was for the first run, and the dependencies were already met.
        facts.deadline = None;
        facts.after = Vec::new();
        facts.idempotency_key = None;
        facts.retry_of = Some(id);
        by.clone_into(&mut facts.submitted_by);
        let submitted = self
            .submit(NewJob {
                id: new_id,
                facts,
                payload: payload.bytes.to_vec(),
                blobs: payload.blobs,
                delay: Duration::ZERO,
                essence: None,
                then,
            })
            .await?;
        Ok(submitted.job().clone())
    }

    /// The follower of a job as a new job; `None` if its payload no longer exists.
    async fn resubmit_follower(&self, follower: JobId, by: &str) -> Result<Option<Box<NewJob>>, LogError> {
        let payload = Payload::read(&self.shared.log, follower).await?;
        let (Some(job), Some(payload)) = (self.get(follower).await?, payload) else {
            return Ok(None);
        };
        let mut facts = job.record.facts;
        by.clone_into(&mut facts.submitted_by);
        Ok(Some(Box::new(NewJob {
            id: JobId::generate(),
            facts,
            payload: payload.bytes.to_vec(),
            blobs: payload.blobs,
            delay: Duration::ZERO,
            essence: None,
            then: None,
        })))
    }

    /// Removes jobs that have ended, unless others wait for them.
    ///
    /// *Cancel safety*: if the future is dropped, some are removed, each completely.
    ///
    /// # Errors
    /// If the log can't be read or written.
    pub async fn collect(&self, policy: GcPolicy) -> Result<JobsCollected, LogError> {
        collect::collect(&self.shared.log, policy, self.shared.wall.now()).await
    }

    /// Changes how many jobs run at once here. Running jobs continue; with zero, no new ones start.
    pub async fn set_max_workers(&self, max_workers: usize) {
        self.tell(Message::MaxWorkers(max_workers)).await;
    }

    /// The number of jobs by state.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts.read().state
    }

    /// Signals from now on when a job or its output changes, here or on another machine.
    #[must_use]
    pub fn moves(&self) -> JobChanges {
        JobChanges {
            jobs: self.shared.log.changes(Record::KIND),
            output: self.shared.log.changes(history::OUTPUT_KIND),
        }
    }

    /// Stops claiming and accepting jobs. Running jobs continue.
    pub async fn close(&self) {
        self.shared
            .closing
            .cancel(Cause::new("the daemon", "no more jobs are taken"));
        self.tell(Message::Close).await;
    }

    /// Stops claiming, waits for running jobs until the deadline, then stops the rest and releases them. When
    /// this returns, everything is on disk, and nothing of any job is running here.
    ///
    /// *Cancel safety*: if the future is dropped, running jobs continue.
    pub async fn drain(&self, deadline: &Deadline) {
        self.close().await;
        let mut idle = std::pin::pin!(self.idle());
        let is_idle = tokio::select! {
            biased;
            () = &mut idle => true,
            () = deadline.clone().passed() => false,
        };
        if !is_idle {
            self.tell(Message::Interrupt).await;
            idle.await;
        }
        self.tell(Message::End).await;
    }

    /// Waits until nothing is running here and everything is on disk.
    async fn idle(&self) {
        let (answer, idle) = oneshot::channel();
        self.tell(Message::Idle { answer }).await;
        // The dispatcher answers, or it is gone, and then nothing runs either.
        drop(idle.await);
    }

    /// The dispatcher is gone only after a drain, and at the end of the daemon.
    async fn tell(&self, message: Message) {
        drop(self.shared.inbox.send(message).await);
    }
}
