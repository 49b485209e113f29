//! The one task that decides which job runs when.
//!
//! It keeps the queue in memory, and makes every change that this worker makes: claims, ends, interruptions. At any
//! time one commit is on its way to the log. What happens meanwhile goes into the next one, so that under load one
//! commit carries the ends of some jobs and the claims of the next ones, and the cost of the disk is shared.
//!
//! - `hear` takes what it is told.
//! - `plan` makes the next commit from what is to be done.
//! - `land` takes its answer: what was refused is looked at again, as it is now.
//! - `attempts` starts and stops attempts.
//! - `lanes` are the limits that jobs share, `lease` is the life of this worker.
//!
//! **Invariant:** nothing here is the truth. A job that the queue has wrong is refused by the log, which says what is
//! right. So a message that is lost or late costs time, and never makes a job run twice.
//!
//! **Invariant:** no commit names a job twice. What is decided on an older version of it is refused by the log, and let go.
//!
//! **Invariant:** an attempt is started after its claim is on disk, and its end is forgotten here after that is.

mod attempts;
mod hear;
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
    attempt::Stop,
    handler::Handler,
    job::{Job, Pool},
    message::Message,
    pools::ByPool,
    queue::Queue,
    recover::Found,
    service::Sharing,
    state::Change,
    worker::Identity,
};
use eventlog::WallClock;
use lanes::Lanes;
pub(crate) use lanes::{IDLE, Lane};
use payloads::Payloads;
use plan::Batch;

/// How many messages are looked at before the next commit is planned: as many as one commit can answer.
const MESSAGES_AT_ONCE: usize = 256;
/// How many jobs whose time is over are given up at once. There is a next time soon.
const EXPIRED_AT_ONCE: usize = 128;
/// The pause after the log has failed, before it is tried again. What is to be written waits; there is nothing else to
/// be done with it.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// What is said of a job whose worker has lost its lease.
const LEASE_LOST: &str = "its worker has lost its lease";

/// What the dispatcher is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) log: Log,
    pub(crate) sharing: Sharing,
    pub(crate) identity: Identity,
    pub(crate) handlers: BTreeMap<Arc<str>, Arc<dyn Handler>>,
    pub(crate) max_workers: usize,
    pub(crate) lease: Duration,
    pub(crate) tasks: Tasks,
    pub(crate) wall: WallClock,
    pub(crate) counts: Slot<Counts>,
    pub(crate) inbox: mpsc::Receiver<Message>,
    /// For those who work for it. It does not keep the dispatcher alive.
    pub(crate) report: mpsc::WeakSender<Message>,
}

pub(crate) struct Dispatcher {
    parts: Parts,
    queue: Queue,
    /// The jobs of the queue, whole.
    queued: HashMap<JobId, Box<Job>>,
    payloads: Payloads,
    lanes: Lanes,
    /// The jobs that this worker has, started or not, until their end is on disk.
    running: HashMap<JobId, Running>,
    /// Those that were claimed before their turn, in the order of their claims.
    ahead: ByPool<VecDeque<JobId>>,
    /// How many attempts are under way.
    executing: ByPool<usize>,
    pace: attempts::Pace,
    /// Changes that are to be committed.
    todo: VecDeque<Todo>,
    /// Jobs whose claim is on its way and that somebody wants to be cancelled already.
    wishes: HashMap<JobId, Box<Job>>,
    flight: Option<Flight>,
    renewal: Option<Renewal>,
    /// How many claims go into one commit. Less when others claim from the same queue.
    claims_at_once: usize,
    door: Door,
    idle: Vec<oneshot::Sender<()>>,
    /// Nothing is committed before this.
    pause: Option<Deadline>,
    counts: Counts,
}

/// A job that this worker has.
struct Running {
    job: Job,
    stop: Stop,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// It was claimed before its turn and has not begun.
    Ahead,
    /// Its handler is at work.
    Executing { since: Instant },
    /// Its end is to be committed.
    Ending,
}

/// A change that is to be made, of a job as it was seen last.
struct Todo {
    job: Job,
    change: Change,
}

/// A commit that is on its way.
struct Flight {
    batch: Batch,
    answer: BoxFuture<'static, Result<Vec<Committed>, CommitError>>,
}

/// A lease that was asked for.
struct Renewal {
    asked_at: Instant,
    answer: BoxFuture<'static, Result<Lease, LeaseError>>,
}

/// Whether jobs are claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Door {
    Open,
    Closed,
}

/// What wakes the dispatcher.
enum Woken {
    Landed(Result<Vec<Committed>, CommitError>),
    Leased(Result<Lease, LeaseError>),
    Told(Message),
    Due,
    /// Every handle is gone.
    Alone,
}

impl Dispatcher {
    pub(crate) fn new(parts: Parts) -> Self {
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
            pace: attempts::Pace::default(),
            todo: VecDeque::new(),
            wishes: HashMap::new(),
            flight: None,
            renewal: None,
            claims_at_once: plan::CLAIMS_AT_ONCE,
            door: Door::Closed,
            idle: Vec::new(),
            pause: None,
            counts,
        }
    }

    /// Takes over what was found in the log. Nothing is claimed before it is told to.
    pub(crate) fn restore(&mut self, found: Found) {
        for (name, lane) in found.lanes {
            self.lanes.put(name, lane, &mut self.queue);
        }
        // A job that another daemon has queued again meanwhile was found twice, and the newer one counts.
        for job in found.queued {
            self.enqueue(job);
        }
        for job in found.dead {
            self.dead(job, "the daemon that ran it is gone".to_owned());
        }
    }

    /// Runs until nothing is left to be done and nobody can ask for more.
    pub(crate) async fn run(mut self) {
        loop {
            self.prepare();
            let woken = self.woken().await;
            // First of all, in case this process was stopped meanwhile.
            self.give_up_what_is_over();
            match woken {
                Woken::Landed(answer) => {
                    let batch = self.flight.take().map(|flight| flight.batch);
                    if let Some(batch) = batch {
                        self.land(batch, answer);
                    }
                }
                Woken::Leased(answer) => self.leased(answer),
                Woken::Told(message) => {
                    self.hear(message);
                    for _ in 1..MESSAGES_AT_ONCE {
                        let Ok(message) = self.parts.inbox.try_recv() else {
                            break;
                        };
                        self.hear(message);
                    }
                }
                Woken::Due => {}
                Woken::Alone => {
                    // What is still to be written is written; an attempt that goes on would be heard of.
                    self.close();
                    if self.todo.is_empty() && self.flight.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Everything that can be decided now is decided, and the next commit is on its way.
    fn prepare(&mut self) {
        let now = self.parts.wall.now();
        self.queue.advance(now);
        for id in self.queue.expired(now, EXPIRED_AT_ONCE) {
            if let Some(job) = self.forget_queued(id) {
                self.todo(*job, Change::Expire { now });
            }
        }
        if self.pause.as_ref().is_some_and(Deadline::has_passed) {
            self.pause = None;
        }
        self.look_after_lease();
        if self.flight.is_none() && self.pause.is_none() {
            self.flight = self.plan();
        }
        self.publish();
        if self.is_idle() {
            for answer in self.idle.drain(..) {
                // Whoever has gone need not hear it.
                answer.send(()).ok();
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.todo.is_empty() && self.flight.is_none()
    }

    /// Waits for whatever comes first.
    async fn woken(&mut self) -> Woken {
        let due = self.next_due();
        // Once everybody has gone there is nobody to listen to while the last things are written.
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
            answer = async { match flight { Some(flight) => (&mut flight.answer).await, None => std::future::pending().await } } => Woken::Landed(answer),
            answer = async { match renewal { Some(renewal) => (&mut renewal.answer).await, None => std::future::pending().await } } => Woken::Leased(answer),
            message = parts.inbox.recv(), if is_heard => message.map_or(Woken::Alone, Woken::Told),
            () = due.passed() => Woken::Due,
        }
    }

    /// When there is something to be done though nothing happens.
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
        // While one is on its way there is nothing to wake up for, and its time has come already.
        let is_wanted = self.renewal.is_none() && !self.running.is_empty();
        let renewal = renew_at.filter(|_| is_wanted).map(after);
        [queue, renewal, over]
            .into_iter()
            .flatten()
            .fold(Deadline::never(), sooner)
    }

    /// How many may run of a pool.
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
