//! What other daemons do to the jobs of a log that is shared: new ones, wishes to cancel, workers that are dead.
//!
//! A hint says that something may have moved. What counts is what is found in the log then; and it is looked at from
//! time to time without any hint too.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use eventlog::{
    Commit, HeadsOrder, HeadsQuery, LeaseError, Log, LogError, Moves, MovesEnd, StoredHead, Version,
};
use kernel::{Cause, Deadline, Scope, Slot};
use protocol::{JobId, JobState};
use tokio::sync::{mpsc, oneshot};

use crate::{
    answers::Counts,
    dispatch::Lane,
    history,
    job::{Job, State},
    message::Message,
};
use eventlog::WallClock;

/// How many heads are read at a time.
const PAGE: u32 = 256;
/// The shortest time between two looks at everything. Under load hints come by the thousand.
const BREATH: Duration = Duration::from_millis(250);
/// While a worker is free, new jobs are looked for meanwhile. After each such look there is a pause of so many times the time
/// that it took, so that an idle daemon beside a busy one spends a fifth of its time on this at most.
const PAUSE_PER_LOOK: u32 = 4;
/// How often it is looked without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// With each how-manieth look all queued jobs are read, and not only the newest: one that was queued again is old.
const ALL_EVERY: u64 = 6;
/// How long the lease of a dead worker is held while its jobs are interrupted.
const TAKEN_OVER_FOR: Duration = Duration::from_secs(10);

/// Looks at the log for others' doings.
pub(crate) struct Scout {
    pub(crate) log: Log,
    pub(crate) wall: WallClock,
    pub(crate) home: Arc<str>,
    pub(crate) boot: String,
    /// As the dispatcher counts.
    pub(crate) counts: Slot<Counts>,
    /// It does not keep the dispatcher alive.
    pub(crate) report: mpsc::WeakSender<Message>,
    pub(crate) scope: Scope,
    /// The jobs that ran here at the last look. Those that still do are told: the others may have ended since they were read.
    pub(crate) held_before: HashMap<JobId, Version>,
    /// The lanes that were full at the last look. If one has not moved since, it is looked at what it names.
    pub(crate) full_before: HashMap<Arc<str>, Version>,
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Extent {
    Newest,
    All,
}

/// Whether something has moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stirred {
    No,
    Yes,
}

impl Scout {
    /// Looks until the scope is cancelled or nobody listens.
    pub(crate) async fn run(mut self) {
        let mut moves = self.log.moved(history::JOB_KIND);
        for look in 1_u64.. {
            if self.report.strong_count() == 0 {
                return;
            }
            let extent = if look % ALL_EVERY == 0 {
                Extent::All
            } else {
                Extent::Newest
            };
            if let Err(error) = self.look(extent).await {
                tracing::warn!(%error, "the jobs of other daemons could not be looked at");
            }
            let patience = Deadline::after(self.wall.clock(), LOOK_EVERY);
            match self.breathe(&mut moves).await {
                Ok(Stirred::Yes) => {}
                // Both a hint and the end of the patience are reasons to look.
                Ok(Stirred::No) => {
                    if let Err(MovesEnd::Cancelled(_)) = moves.next(patience, &self.scope).await {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// Waits until everything may be looked at again. Meanwhile each hint is a reason to look for new jobs, as long as a
    /// worker is free for one.
    async fn breathe(&self, moves: &mut Moves) -> Result<Stirred, Arc<Cause>> {
        let clock = self.wall.clock();
        let breath = Deadline::after(clock, BREATH);
        let mut stirred = Stirred::No;
        loop {
            match moves.next(breath.clone(), &self.scope).await {
                Ok(()) => stirred = Stirred::Yes,
                Err(MovesEnd::DeadlineExceeded) => return Ok(stirred),
                Err(MovesEnd::Cancelled(cause)) => return Err(cause),
            }
            if !self.has_free_worker() {
                continue;
            }
            let began = clock.now();
            if let Err(error) = self.look_at_queued(Extent::Newest).await {
                tracing::warn!(%error, "new jobs of other daemons could not be looked for");
            }
            let took = clock.now().saturating_duration_since(began);
            tokio::select! {
                cause = self.scope.wait() => return Err(cause),
                () = Deadline::after(clock, took * PAUSE_PER_LOOK).passed() => {}
            }
        }
    }

    fn has_free_worker(&self) -> bool {
        let counts = self.counts.read().state;
        counts.running < counts.max_workers
    }

    async fn look(&mut self, extent: Extent) -> Result<(), LogError> {
        self.look_at_queued(extent).await?;
        self.look_at_running().await?;
        self.look_at_full_lanes().await?;
        self.look_at_awaited().await
    }

    async fn look_at_queued(&self, extent: Extent) -> Result<(), LogError> {
        let mut after = None;
        loop {
            let page = self
                .page(history::JOB_KIND, Some(JobState::Queued.as_str()), after)
                .await?;
            let is_last = page.len() < PAGE as usize || extent == Extent::Newest;
            after = page.last().map(|stored| stored.stream.clone());
            self.tell(Message::Found(jobs(&self.log, &page))).await;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Jobs that run: some of ours may be wanted to be cancelled, and the workers of others may be dead.
    async fn look_at_running(&mut self) -> Result<(), LogError> {
        let (mut after, mut by_worker) = (None, BTreeMap::<_, Vec<Job>>::new());
        let mut held = HashMap::new();
        loop {
            let page = self
                .page(history::JOB_KIND, Some(JobState::Running.as_str()), after)
                .await?;
            after = page.last().map(|stored| stored.stream.clone());
            for job in jobs(&self.log, &page) {
                let State::Running { attempt } = &job.record.state else {
                    continue;
                };
                let worker = &attempt.worker;
                if worker.home == self.home && worker.lease_key.contains(&self.boot) {
                    let is_older = self.held_before.get(&job.id) == Some(&job.version);
                    held.insert(job.id, job.version);
                    let job = Box::new(job);
                    if job.record.cancel.is_some() {
                        self.tell(Message::Cancelled(job.clone())).await;
                    }
                    if is_older {
                        self.tell(Message::Held(job)).await;
                    }
                    continue;
                }
                by_worker.entry(worker.clone()).or_default().push(job);
            }
            if page.len() < PAGE as usize {
                break;
            }
        }
        self.held_before = held;
        for (worker, jobs) in by_worker {
            if worker.home == self.home {
                // A home has one daemon at a time, so whoever else had this home is dead.
                self.bury(jobs, "the daemon that ran it is gone").await;
                continue;
            }
            match self
                .log
                .lease(&worker.lease_key, &self.boot, TAKEN_OVER_FOR)
                .await
            {
                Ok(lease) => {
                    // It was free, so its holder is dead or given up; what it may still write is refused now.
                    self.bury(jobs, "its worker has not been heard of").await;
                    drop(self.log.release(&lease).await);
                }
                Err(LeaseError::Held { .. }) => {}
                Err(LeaseError::Log(error)) => return Err(error),
                Err(error) => tracing::warn!(%error, "the lease of another worker could not be looked at"),
            }
        }
        Ok(())
    }

    async fn bury(&self, jobs: Vec<Job>, text: &str) {
        for job in jobs {
            let text = text.to_owned();
            let job = Box::new(job);
            self.tell(Message::Dead { job, text }).await;
        }
    }

    /// Lanes that jobs wait for here may have been freed elsewhere.
    async fn look_at_full_lanes(&mut self) -> Result<(), LogError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::FullLanes { answer }).await;
        let mut full = HashMap::new();
        for (name, seen) in answered.await.unwrap_or_default() {
            let stored = self.log.head(&history::lane_stream(&name)).await?;
            let Some(lane) = stored.as_ref().map(Lane::of) else {
                self.tell(Message::LaneGone { name, seen }).await;
                continue;
            };
            let lane = match self.full_before.get(&name) == Some(&lane.version) {
                true => self.swept(&name, lane).await?,
                false => lane,
            };
            full.insert(Arc::clone(&name), lane.version);
            self.tell(Message::Lane { name, lane }).await;
        }
        self.full_before = full;
        Ok(())
    }

    /// A lane without the jobs that it names and that do not run.
    ///
    /// A job that ends leaves its lane in the same commit. So there are none, unless a damaged job was dropped; and then
    /// nobody else would ever free the lane.
    async fn swept(&self, name: &Arc<str>, lane: Lane) -> Result<Lane, LogError> {
        let mut running = lane.running.clone();
        for id in &lane.running {
            let job = match id.parse() {
                Ok(id) => history::read(&self.log, id).await?,
                Err(_) => None,
            };
            if job.is_none_or(|job| job.record.state.name() != JobState::Running) {
                running.remove(id);
            }
        }
        if running == lane.running {
            return Ok(lane);
        }
        let committed = match lane.write(name, running.clone()) {
            Ok(write) => self.log.commit(Commit::one(write)).await,
            Err(error) => Err(error),
        };
        match committed.as_deref() {
            Ok([committed]) => {
                tracing::warn!(lane = %name, "a lane named jobs that do not run, and was freed");
                let version = committed.version;
                Ok(Lane { version, running })
            }
            // It has moved, or is looked at again soon.
            answer => {
                tracing::debug!(?answer, lane = %name, "a lane was not freed");
                Ok(lane)
            }
        }
    }

    /// Jobs that ours wait for may have ended elsewhere.
    async fn look_at_awaited(&self) -> Result<(), LogError> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::WaitedFor { answer }).await;
        for id in answered.await.unwrap_or_default() {
            let job = history::read(&self.log, id).await?;
            let state = job.map(|job| job.record.state.name());
            self.tell(Message::Looked { id, state }).await;
        }
        Ok(())
    }

    async fn page(
        &self,
        kind: &str,
        status: Option<&str>,
        after: Option<eventlog::StreamId>,
    ) -> Result<Vec<StoredHead>, LogError> {
        self.log
            .heads(HeadsQuery {
                kind: kind.into(),
                status: status.map(Into::into),
                after,
                limit: PAGE,
                order: HeadsOrder::NewestFirst,
            })
            .await
    }

    /// Nobody listens only when the service is gone.
    async fn tell(&self, message: Message) {
        if let Some(report) = self.report.upgrade() {
            drop(report.send(message).await);
        }
    }
}

fn jobs(log: &Log, page: &[StoredHead]) -> Vec<Job> {
    page.iter()
        .filter_map(|stored| history::readable(log, stored))
        .collect()
}
