//! The service as everybody else sees it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use eventlog::{
    Bookmark, Commit, CommitError, HeadsOrder, HeadsQuery, Log, LogError, Sequence, StoredHead, Write,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slot};
use process::Tasks;
use protocol::{BootId, HomeId, JobId, JobsCollected};
use tokio::sync::{mpsc, oneshot};

use crate::{
    answers::{Counts, JobMoves, ListQuery, Requested, SeenNow, Submitted, WaitingFor},
    attempt::Payload,
    collect::{self, GcPolicy},
    dispatch::{Dispatcher, Parts},
    error::{ChangeError, OpenJobsError, SubmitError},
    handler::Handler,
    history::{self, Moment},
    job::{Job, NewJob, State},
    message::Message,
    output::{self, FollowEnd, OutputSummary, OutputTail},
    queue::QUEUE_LIMIT,
    recover,
    scout::Scout,
    state::{self, Change, Refused},
    submit, wait,
    worker::Identity,
};
use eventlog::{UnixMs, WallClock};

/// How many messages may wait for the dispatcher. It looks at all of them between two commits; who comes when it is
/// full waits.
const INBOX: usize = 1024;
/// How often a cancellation is decided again because the job has moved meanwhile. A job moves a few times in its life,
/// so this is never reached.
const CANCEL_TRIES: usize = 64;
/// How many events of a history are read at a time.
const HISTORY_PAGE: u32 = 256;
/// How many reads of one question are under way at once: enough to hide the way to a database, and no more than it has
/// connections to spare.
const READS_AT_ONCE: usize = 8;

/// What the service needs.
#[derive(Debug)]
pub struct JobsOptions {
    /// Where jobs are kept.
    pub log: Log,
    /// Whether other daemons use the same log.
    pub sharing: Sharing,
    /// The home of this daemon.
    pub home_id: HomeId,
    /// Which life of the daemon this is.
    pub boot_id: BootId,
    /// Who does the work, by name.
    pub handlers: BTreeMap<Arc<str>, Arc<dyn Handler>>,
    /// How many jobs run at once.
    pub max_workers: usize,
    /// How long a worker may be silent before its jobs are taken from it.
    pub lease: Duration,
    /// Where the tasks of the service run.
    pub tasks: Tasks,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Whether other daemons use the same log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sharing {
    /// Nobody else has it: a job that runs and is not ours has lost its worker.
    Alone,
    /// Others have it too: their jobs are theirs until their lease is over.
    WithOthers,
}

/// The jobs of a log. Clones are the same service. When the last one is dropped, nothing more is claimed; what runs is
/// not stopped by that, see [`Jobs::drain`].
#[derive(Clone, Debug)]
pub struct Jobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Log,
    wall: WallClock,
    handlers: Vec<Arc<str>>,
    inbox: mpsc::Sender<Message>,
    counts: Slot<Counts>,
    tasks: Tasks,
    /// Cancelled when no more jobs are taken.
    closing: CancellationToken,
}

impl Jobs {
    /// What time it is for all who share these jobs.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.shared.wall.now()
    }

    /// Takes the jobs of a log over. When this returns, nothing in it is said to run that does not: jobs of this home,
    /// and all if nobody shares the log, whose worker is dead are queued again or failed.
    ///
    /// *Cancel safety*: dropped half-way, some jobs are interrupted; the next one does the rest.
    ///
    /// # Errors
    /// If the log cannot be read or written.
    pub async fn open(options: JobsOptions) -> Result<Self, OpenJobsError> {
        let wall = options.log.wall_clock(options.clock);
        let (home, boot) = (options.home_id.to_string(), options.boot_id.to_string());
        let found = recover::recover(&options.log, options.sharing, &home).await?;
        let counts = Slot::new(Counts::default());
        let (inbox, messages) = mpsc::channel(INBOX);
        let closing = CancellationToken::new();
        let identity = Identity::new(options.sharing, home, boot.clone());
        let scout = Scout {
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
        let shared = Shared {
            log: options.log.clone(),
            wall: wall.clone(),
            handlers: options.handlers.keys().cloned().collect(),
            inbox: inbox.clone(),
            counts: counts.clone(),
            tasks: options.tasks.clone(),
            closing,
        };
        let mut dispatcher = Dispatcher::new(Parts {
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
            options.tasks.spawn("job-scout", scout.run());
        }
        let jobs = Self {
            shared: Arc::new(shared),
        };
        // What is said to run and does not is put right before anybody can ask.
        jobs.idle().await;
        jobs.tell(Message::Open).await;
        Ok(jobs)
    }

    /// Takes a job. When this returns, it is on disk.
    ///
    /// *Cancel safety*: dropped half-way, the job is taken all the same, if it can be, and runs; with an idempotency key it can
    /// be submitted again without harm.
    ///
    /// # Errors
    /// See [`SubmitError`]; the job was not taken.
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

    /// Puts a job on disk and tells the dispatcher, which would not hear of it otherwise.
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

    /// A job; `None` if there is none of that id.
    ///
    /// *Cancel safety*: may be dropped at any time, as all that only read may.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn get(&self, id: JobId) -> Result<Option<Job>, LogError> {
        history::read(&self.shared.log, id).await
    }

    /// Jobs, newest first. Those that only deal with the end of another one are left out; the other one names them.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<Job>, LogError> {
        let log = &self.shared.log;
        let wanted = query.limit as usize;
        let mut after = query.before.map(history::job_stream);
        let mut found: Vec<Job> = Vec::new();
        // Those that cannot be read are left out; a page that is short because of them would look like the last one.
        loop {
            let heads = HeadsQuery {
                kind: history::JOB_KIND.into(),
                status: query.state.map(|state| state.as_str().into()),
                after: after.take(),
                limit: query.limit,
                order: HeadsOrder::NewestFirst,
            };
            let heads = log.heads(heads).await?;
            let jobs = heads.iter().filter_map(|stored| history::readable(log, stored));
            found.extend(jobs.filter(|job| !job.record.facts.is_follower()));
            after = heads.last().map(|stored| stored.stream.clone());
            if found.len() >= wanted || heads.len() < wanted || after.is_none() {
                found.truncate(wanted);
                return Ok(found);
            }
        }
    }

    /// What is known of a job's output.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn output_summary(&self, id: JobId) -> Result<OutputSummary, LogError> {
        output::summary(&self.shared.log, id).await
    }

    /// What the job was submitted with.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn payload(&self, id: JobId) -> Result<Option<Arc<[u8]>>, LogError> {
        let payload = Payload::read(&self.shared.log, id).await?;
        Ok(payload.map(|payload| payload.bytes))
    }

    /// Why a queued job does not run yet; `None` if it is not queued here.
    pub async fn waiting_for(&self, id: JobId) -> Option<WaitingFor> {
        self.all_waiting_for(vec![id]).await.pop().flatten()
    }

    /// The same for several, in their order; nothing at all if the service has ended.
    async fn all_waiting_for(&self, ids: Vec<JobId>) -> Vec<Option<WaitingFor>> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Why { ids, answer }).await;
        // Without an answer, nothing waits here any more.
        answered.await.unwrap_or_default()
    }

    /// What is known of some jobs now, beside what is written in them. Those that have not begun cost no read of the log,
    /// however many there are, and all of them together one question to the queue.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn seen_now(&self, jobs: &[Job]) -> Result<Vec<SeenNow>, LogError> {
        let begun: Vec<Option<JobId>> = jobs
            .iter()
            .map(|job| Some(job.id).filter(|_| job.record.attempts > 0))
            .collect();
        let output = |begun: Option<JobId>| async move {
            match begun {
                Some(id) => match self.output_summary(id).await {
                    // It is quarantined, and keeps nobody from seeing the job.
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

    /// The job that a head is of, for somebody who has it already; `None` if it cannot be read.
    #[must_use]
    pub fn of_head(&self, stored: &StoredHead) -> Option<Job> {
        history::readable(&self.shared.log, stored)
    }

    /// What has happened to a job after a place, oldest first.
    ///
    /// # Errors
    /// If the log cannot be read.
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

    /// Waits until a job has ended. When the deadline passes first, the answer is the job as it is then.
    ///
    /// *Cancel safety*: may be dropped at any time.
    ///
    /// # Errors
    /// If there is no such job, the scope is cancelled, or the log cannot be read.
    pub async fn wait(&self, id: JobId, deadline: &Deadline, scope: &Scope) -> Result<Job, FollowEnd> {
        let ended = wait::ended(&self.shared.log, id, scope);
        let mut ended = std::pin::pin!(ended);
        tokio::select! {
            biased;
            ended = &mut ended => ended,
            () = deadline.clone().passed() => self.get(id).await?.ok_or(FollowEnd::NotFound),
        }
    }

    /// Follows the output of a job from a place on, until the job has ended.
    #[must_use]
    pub fn follow(&self, id: JobId, after: impl Into<Bookmark>, scope: &Scope) -> OutputTail {
        OutputTail::new(&self.shared.log, id, after.into(), scope)
    }

    /// Asks for a job to be cancelled. A queued one is cancelled when this returns. A running one is being stopped;
    /// the wish is on disk, and its worker honours it even if it hears of it late.
    ///
    /// *Cancel safety*: dropped half-way, it is cancelled all the same.
    ///
    /// # Errors
    /// See [`ChangeError`]; an ended job stays as it is.
    pub async fn cancel(&self, id: JobId, request: Requested) -> Result<Job, ChangeError> {
        let jobs = self.clone();
        let cancelling = async move { jobs.wish_cancelled(id, request).await };
        let done = self.shared.tasks.to_the_end("job-cancel", cancelling).await;
        done.unwrap_or(Err(ChangeError::Log(LogError::Closed)))
    }

    /// Puts the wish on disk and tells the dispatcher.
    async fn wish_cancelled(&self, id: JobId, request: Requested) -> Result<Job, ChangeError> {
        let mut job = self.get(id).await?.ok_or(ChangeError::NotFound { id })?;
        for _ in 0..CANCEL_TRIES {
            let change = Change::Cancel {
                by: request.by.clone(),
                why: request.why.clone(),
                now: self.shared.wall.now(),
            };
            let step = match state::apply(&job.record, change) {
                Ok(step) => step,
                Err(Refused::AlreadyCancelling) => return Ok(job),
                Err(_) => return Err(ChangeError::Ended { job: Box::new(job) }),
            };
            let write = Write {
                stream: history::job_stream(id),
                expected: job.version,
                head: Some(history::head(&step.record).map_err(ChangeError::Commit)?),
                events: history::new_events(&step.happenings).map_err(ChangeError::Commit)?,
            };
            match self.shared.log.commit(Commit::one(write)).await {
                Ok(committed) => {
                    if let Some(committed) = committed.first() {
                        job.version = committed.version;
                    }
                    job.record = step.record;
                    self.tell(Message::Cancelled(Box::new(job.clone()))).await;
                    return Ok(job);
                }
                Err(CommitError::Conflict { actual, .. }) => {
                    job = still_there(&self.shared.log, id, actual.as_deref())?
                }
                Err(CommitError::Log(error)) => return Err(ChangeError::Log(error)),
                Err(error) => return Err(ChangeError::Commit(error)),
            }
        }
        Ok(job)
    }

    /// Submits a job that has ended once more, as a new one of another id. The old one stays what it is.
    ///
    /// *Cancel safety*: dropped half-way, the new job may or may not be taken.
    ///
    /// # Errors
    /// See [`ChangeError`]; no new job was taken.
    pub async fn retry(&self, id: JobId, new_id: JobId, by: &str) -> Result<Job, ChangeError> {
        let job = self.get(id).await?.ok_or(ChangeError::NotFound { id })?;
        if !job.record.state.is_terminal() {
            return Err(ChangeError::NotEnded { job: Box::new(job) });
        }
        let payload = Payload::read(&self.shared.log, id).await?;
        let payload = payload.ok_or(ChangeError::Forgotten { id })?;
        let mut facts = job.record.facts;
        let then = match facts.followed_by.take() {
            Some(follower) => self.again(follower, by).await?,
            None => None,
        };
        // The time it had was for the first one. What it waited for has been waited for.
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

    /// What was to be done at the end of a job, once more; nothing if it is not known any more.
    async fn again(&self, follower: JobId, by: &str) -> Result<Option<Box<NewJob>>, LogError> {
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

    /// Forgets jobs that have ended, unless others wait for them.
    ///
    /// *Cancel safety*: dropped half-way, some are forgotten, each whole.
    ///
    /// # Errors
    /// If the log cannot be read or written.
    pub async fn collect(&self, policy: GcPolicy) -> Result<JobsCollected, LogError> {
        collect::collect(&self.shared.log, policy, self.shared.wall.now()).await
    }

    /// Changes how many jobs run at once here. What runs goes on; with none, nothing new is started.
    pub async fn set_max_workers(&self, max_workers: usize) {
        self.tell(Message::MaxWorkers(max_workers)).await;
    }

    /// How many jobs there are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts.read().state
    }

    /// Tells from now on of changes of any job or its output, here or on another machine.
    #[must_use]
    pub fn moves(&self) -> JobMoves {
        JobMoves {
            jobs: self.shared.log.moved(history::JOB_KIND),
            output: self.shared.log.moved(history::OUTPUT_KIND),
        }
    }

    /// Claims nothing more from now on, and takes no more jobs. What runs goes on.
    pub async fn close(&self) {
        self.shared
            .closing
            .cancel(Cause::new("the daemon", "no more jobs are taken"));
        self.tell(Message::Close).await;
    }

    /// Claims nothing more, waits for what runs until the deadline, then stops what is left and gives it back. When
    /// this returns, everything is on disk, and nothing of any job runs here.
    ///
    /// *Cancel safety*: dropped half-way, what runs goes on.
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

    /// Waits until nothing runs here and everything is on disk.
    async fn idle(&self) {
        let (answer, idle) = oneshot::channel();
        self.tell(Message::Idle { answer }).await;
        // It is answered then, or dropped with the dispatcher, and then there is nothing either.
        drop(idle.await);
    }

    /// The dispatcher is gone only after a drain, and when all tasks are, at the end of the daemon.
    async fn tell(&self, message: Message) {
        drop(self.shared.inbox.send(message).await);
    }
}

/// The job that stands in the way of a write.
fn still_there(log: &Log, id: JobId, actual: Option<&StoredHead>) -> Result<Job, ChangeError> {
    actual
        .and_then(|stored| history::readable(log, stored))
        .ok_or(ChangeError::NotFound { id })
}
