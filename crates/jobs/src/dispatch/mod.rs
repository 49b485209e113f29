//! The one task that decides which job runs when.
//!
//! It keeps the queue in memory, and makes every change that this worker makes: claims, ends, interruptions. One
//! commit is in flight at a time. What happens in the meantime goes into the next one, so under load one commit
//! carries the ends of some jobs and the claims of the next ones, and they share the cost of the disk.
//!
//! - `handle` handles messages.
//! - `plan` makes the next commit from what is pending.
//! - `land` handles its answer: what was refused is decided again on the current state.
//! - `attempts` starts and stops attempts.
//! - `lanes` are the limits that jobs share, `lease` is the life of this worker.
//!
//! **Invariant:** nothing here is authoritative. If the queue has a job wrong, the log refuses the commit and
//! returns the current state. So a lost or late message costs time, but never makes a job run twice.
//!
//! **Invariant:** no commit names a job twice. A decision on an older version is refused by the log and dropped.
//!
//! **Invariant:** an attempt starts after its claim is on disk, and is forgotten here after its end is.

mod attempts;
mod handle;
mod land;
mod lanes;
mod lease;
mod payloads;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{CommitError, Committed, Lease, LeaseError, Log};
use futures_util::future::BoxFuture;
use kernel::{Deadline, Slot};
use process::Tasks;
use protocol::JobId;
use tokio::sync::{mpsc, oneshot};

use crate::{
    FOREGROUND_LIMIT,
    answers::Counts,
    attempt::StopHandle,
    handler::Handler,
    job::{Job, Pool},
    message::Message,
    pools::ByPool,
    queue::Queue,
    recover::JobScan,
    service::Sharing,
    state::Change,
    worker::WorkerIdentity,
};
use eventlog::WallClock;
use lanes::Lanes;
pub(crate) use lanes::{IDLE, Lane};
use payloads::Payloads;
use plan::Batch;

/// How many messages are handled before the next commit is planned: as many as one commit can answer.
const MESSAGES_AT_ONCE: usize = 256;
/// How many expired jobs are failed at once. The rest follows soon.
const EXPIRED_AT_ONCE: usize = 128;
/// The pause before retrying after the log has failed. Pending changes wait; there is nothing else to do with
/// them.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

const LEASE_LOST: &str = "its worker has lost its lease";

#[derive(Debug)]
pub(crate) struct DispatcherParts {
    pub(crate) log: Log,
    pub(crate) sharing: Sharing,
    pub(crate) identity: WorkerIdentity,
    pub(crate) handlers: BTreeMap<Arc<str>, Arc<dyn Handler>>,
    pub(crate) max_workers: usize,
    pub(crate) lease: Duration,
    pub(crate) tasks: Tasks,
    pub(crate) wall: WallClock,
    pub(crate) counts: Slot<Counts>,
    pub(crate) inbox: mpsc::Receiver<Message>,
    /// For its helper tasks. Weak, so that it doesn't keep the dispatcher alive.
    pub(crate) report: mpsc::WeakSender<Message>,
}

pub(crate) struct Dispatcher {
    parts: DispatcherParts,
    queue: Queue,
    /// The queued jobs, complete.
    queued: HashMap<JobId, Box<Job>>,
    payloads: Payloads,
    lanes: Lanes,
    /// The jobs of this worker, started or not, until their end is on disk.
    running: HashMap<JobId, Running>,
    /// Jobs that were claimed ahead, in the order of their claims.
    ahead: ByPool<VecDeque<JobId>>,
    /// How many attempts run.
    executing: ByPool<usize>,
    pace: attempts::AttemptPace,
    /// Changes to commit.
    todo: VecDeque<PendingChange>,
    /// Jobs that were cancelled while their claim is in flight.
    early_cancels: HashMap<JobId, Box<Job>>,
    flight: Option<InFlightCommit>,
    renewal: Option<Renewal>,
    /// How many claims go into one commit. Fewer when others claim from the same queue.
    claims_at_once: usize,
    claim_gate: ClaimGate,
    idle: Vec<oneshot::Sender<()>>,
    /// Nothing is committed before this time.
    pause: Option<Deadline>,
    counts: Counts,
}

/// A job of this worker.
struct Running {
    job: Job,
    stop: StopHandle,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Claimed ahead and not started.
    Ahead,
    /// Its handler is running.
    Executing { since: Instant },
    /// Its end is about to be committed.
    Ending,
}

/// A pending change of a job as it was last seen.
struct PendingChange {
    job: Job,
    change: Change,
}

struct InFlightCommit {
    batch: Batch,
    answer: BoxFuture<'static, Result<Vec<Committed>, CommitError>>,
}

/// A lease request in flight.
struct Renewal {
    asked_at: Instant,
    answer: BoxFuture<'static, Result<Lease, LeaseError>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ClaimGate {
    Open,
    Closed,
}

enum WakeReason {
    Landed(Result<Vec<Committed>, CommitError>),
    Leased(Result<Lease, LeaseError>),
    Told(Message),
    Due,
    /// All handles are gone.
    Alone,
}

impl Dispatcher {
    pub(crate) fn new(parts: DispatcherParts) -> Self {
        let counts = Counts {
            max_workers: parts.max_workers as u64,
            ..Counts::default()
        };
        Self {
            parts,
            queue: Queue::default(),
            queued: HashMap::new(),
            payloads: Payloads::default(),
            lanes: Lanes::default(),
            running: HashMap::new(),
            ahead: ByPool::default(),
            executing: ByPool::default(),
            pace: attempts::AttemptPace::default(),
            todo: VecDeque::new(),
            early_cancels: HashMap::new(),
            flight: None,
            renewal: None,
            claims_at_once: plan::CLAIMS_AT_ONCE,
            claim_gate: ClaimGate::Closed,
            idle: Vec::new(),
            pause: None,
            counts,
        }
    }

    /// Loads the jobs and lanes found in the log. Nothing is claimed before the message to do so.
    pub(crate) fn restore(&mut self, scan: JobScan) {
        for (name, lane) in scan.lanes {
            self.lanes.put(name, lane, &mut self.queue);
        }
        // A job that another daemon has queued again in the meantime was found twice; the newer version counts.
        for job in scan.queued {
            self.enqueue(job);
        }
        for job in scan.dead {
            self.interrupt_stale(job, "the daemon that ran it is gone".to_owned());
        }
    }

    /// Runs until nothing is left to do and no more requests can arrive.
    pub(crate) async fn run(mut self) {
        loop {
            self.prepare();
            let next_wake = self.next_wake().await;
            // This comes first, in case this process was suspended.
            self.stop_if_lease_expired();
            match next_wake {
                WakeReason::Landed(answer) => {
                    let batch = self.flight.take().map(|flight| flight.batch);
                    if let Some(batch) = batch {
                        self.land(batch, answer);
                    }
                }
                WakeReason::Leased(answer) => self.lease_answered(answer),
                WakeReason::Told(message) => {
                    self.handle(message);
                    for _ in 1..MESSAGES_AT_ONCE {
                        let Ok(message) = self.parts.inbox.try_recv() else {
                            break;
                        };
                        self.handle(message);
                    }
                }
                WakeReason::Due => {}
                WakeReason::Alone => {
                    // Pending changes are still written. A running attempt would still report.
                    self.close();
                    if self.todo.is_empty() && self.flight.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Decides everything that can be decided now, and sends the next commit.
    fn prepare(&mut self) {
        let now = self.parts.wall.now();
        self.queue.advance(now);
        for id in self.queue.expired(now, EXPIRED_AT_ONCE) {
            if let Some(job) = self.forget_queued(id) {
                self.schedule(*job, Change::Expire { now });
            }
        }
        if self.pause.as_ref().is_some_and(Deadline::has_passed) {
            self.pause = None;
        }
        self.renew_lease();
        if self.flight.is_none() && self.pause.is_none() {
            self.flight = self.plan();
        }
        self.publish();
        if self.is_idle() {
            for answer in self.idle.drain(..) {
                // The receiver may be gone.
                answer.send(()).ok();
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.todo.is_empty() && self.flight.is_none()
    }

    /// Waits for whatever comes first.
    async fn next_wake(&mut self) -> WakeReason {
        let due = self.next_due();
        // Once all handles are gone, no more messages arrive while the last changes are written.
        let is_written = self.flight.is_none() && self.todo.is_empty();
        let is_heard = is_written || !self.parts.inbox.is_closed();
        let Self {
            parts,
            flight,
            renewal,
            ..
        } = self;
        tokio::select! {
            biased;
            answer = async { match flight { Some(flight) => (&mut flight.answer).await, None => std::future::pending().await } } => WakeReason::Landed(answer),
            answer = async { match renewal { Some(renewal) => (&mut renewal.answer).await, None => std::future::pending().await } } => WakeReason::Leased(answer),
            message = parts.inbox.recv(), if is_heard => message.map_or(WakeReason::Alone, WakeReason::Told),
            () = due.passed() => WakeReason::Due,
        }
    }

    /// When there is something to do even if nothing happens.
    fn next_due(&self) -> Deadline {
        let clock = self.parts.wall.clock();
        let after = |at: Instant| Deadline::after(clock, at.saturating_duration_since(clock.now()));
        let over = self.lease_over_at().map(after);
        let sooner = |one: Deadline, other: Deadline| match (one.remaining(), other.remaining()) {
            (Some(left), Some(right)) if right < left => other,
            (None, Some(_)) => other,
            _ => one,
        };
        if let Some(pause) = &self.pause {
            return over.into_iter().fold(pause.clone(), sooner);
        }
        let queue = self.queue.next_due().map(|moment| self.parts.wall.at(moment));
        let renew_at = self.parts.identity.renew_at(self.parts.lease);
        // While a renewal is in flight there is nothing to wake up for, and its time has already come.
        let is_wanted = self.renewal.is_none() && !self.running.is_empty();
        let renewal = renew_at.filter(|_| is_wanted).map(after);
        [queue, renewal, over]
            .into_iter()
            .flatten()
            .fold(Deadline::never(), sooner)
    }

    /// How many jobs of a pool may run.
    fn limit(&self, pool: Pool) -> usize {
        match pool {
            Pool::Workers => self.parts.max_workers,
            Pool::Foreground => FOREGROUND_LIMIT,
        }
    }

    fn publish(&mut self) {
        self.counts.queued = self.queued.len().saturating_sub(self.queue.followers()) as u64;
        let of = |pool: Pool| {
            let running = self.running.values();
            running
                .filter(|running| running.job.record.facts.pool == pool)
                .count() as u64
        };
        let (running, foreground) = (of(Pool::Workers), of(Pool::Foreground));
        self.counts.running = running;
        self.counts.foreground = foreground;
        self.counts.max_workers = self.parts.max_workers as u64;
        let seen = self.parts.counts.read();
        if *seen.state != self.counts {
            let written = self
                .parts
                .counts
                .transition_unnoticed(seen.generation, self.counts);
            assert!(written.is_ok(), "only the dispatcher writes the counts");
        }
    }
}
