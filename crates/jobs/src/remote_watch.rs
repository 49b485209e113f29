//! Watches what other daemons do to the jobs of a shared log: new jobs, requests to cancel, dead workers.
//!
//! A hint says that something may have changed. Only what a scan then finds in the log counts, and scans also run
//! from time to time without a hint.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use eventlog::{
    ChangesEnd, Commit, EntityRecord, HeadPages, HeadsOrder, HeadsQuery, LeaseError, Log, LogError,
    StoredHead, StreamChanges, Version,
};
use kernel::{Cause, Deadline, Scope, Slot};
use protocol::{JobId, JobState};
use tokio::sync::{mpsc, oneshot};

use crate::{
    answers::Counts,
    dispatch::Lane,
    history,
    job::{Job, Record, State},
    message::Message,
};
use eventlog::WallClock;

/// How many heads are read at a time.
const PAGE: u32 = 256;
/// The shortest time between two full scans. Under load, hints come by the thousand.
const SCAN_PAUSE: Duration = Duration::from_millis(250);
/// While a worker is free, hints trigger scans for new jobs in between. After each, there is a pause of this many
/// times its duration, so that an idle daemon next to a busy one spends at most a fifth of its time on this.
const PAUSE_PER_SCAN: u32 = 4;
/// How often to scan without a hint.
const SCAN_EVERY: Duration = Duration::from_secs(5);
/// Once in this many scans, read all queued jobs, not only the newest: a job that was queued again is old.
const FULL_SCAN_EVERY: u64 = 6;
/// How long the lease of a dead worker is held while its jobs are interrupted.
const TAKEOVER_LEASE: Duration = Duration::from_secs(10);

/// Scans the log for what other daemons have done.
pub(crate) struct RemoteWatcher {
    pub(crate) log: Log,
    pub(crate) wall: WallClock,
    pub(crate) home: Arc<str>,
    pub(crate) boot: String,
    pub(crate) counts: Slot<Counts>,
    /// Weak, so that it doesn't keep the dispatcher alive.
    pub(crate) report: mpsc::WeakSender<Message>,
    pub(crate) scope: Scope,
    /// The jobs that ran here at the last scan. Only those that still do are reported: the others may have ended
    /// since they were read.
    pub(crate) held_before: HashMap<JobId, Version>,
    /// The lanes that were full at the last scan. If one hasn't changed since, the jobs that it names are
    /// checked.
    pub(crate) full_before: HashMap<Arc<str>, Version>,
}

/// How many queued jobs a scan reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ScanExtent {
    Newest,
    All,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hinted {
    No,
    Yes,
}

impl RemoteWatcher {
    /// Scans until the scope is cancelled or the dispatcher is gone.
    pub(crate) async fn run(mut self) {
        let mut changes = self.log.changes(Record::KIND);
        for number in 1_u64.. {
            if self.report.strong_count() == 0 {
                return;
            }
            let extent = if number % FULL_SCAN_EVERY == 0 {
                ScanExtent::All
            } else {
                ScanExtent::Newest
            };
            if let Err(error) = self.scan(extent).await {
                tracing::warn!(%error, "scanning the jobs of other daemons failed");
            }
            let patience = Deadline::after(self.wall.clock(), SCAN_EVERY);
            match self.wait_between_scans(&mut changes).await {
                Ok(Hinted::Yes) => {}
                // Both a hint and the timeout are reasons to scan.
                Ok(Hinted::No) => {
                    if let Err(ChangesEnd::Cancelled(_)) = changes.next(patience, &self.scope).await {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// Waits until the next full scan may start. Meanwhile, each hint triggers a scan for new jobs, as long as a
    /// worker is free.
    async fn wait_between_scans(&self, changes: &mut StreamChanges) -> Result<Hinted, Arc<Cause>> {
        let clock = self.wall.clock();
        let breath = Deadline::after(clock, SCAN_PAUSE);
        let mut hinted = Hinted::No;
        loop {
            match changes.next(breath.clone(), &self.scope).await {
                Ok(()) => hinted = Hinted::Yes,
                Err(ChangesEnd::DeadlineExceeded) => return Ok(hinted),
                Err(ChangesEnd::Cancelled(cause)) => return Err(cause),
            }
            if !self.has_free_worker() {
                continue;
            }
            let began = clock.now();
            if let Err(error) = self.scan_queued(ScanExtent::Newest).await {
                tracing::warn!(%error, "scanning for new jobs of other daemons failed");
            }
            let took = clock.now().saturating_duration_since(began);
            tokio::select! {
                cause = self.scope.wait() => return Err(cause),
                () = Deadline::after(clock, took * PAUSE_PER_SCAN).passed() => {}
            }
        }
    }

    fn has_free_worker(&self) -> bool {
        let counts = self.counts.read().state;
        counts.running < counts.max_workers
    }

    async fn scan(&mut self, extent: ScanExtent) -> Result<(), LogError> {
        self.scan_queued(extent).await?;
        self.scan_running().await?;
        self.scan_full_lanes().await?;
        self.scan_dependencies().await
    }

    async fn scan_queued(&self, extent: ScanExtent) -> Result<(), LogError> {
        let mut pages = self.pages(JobState::Queued);
        while let Some(page) = pages.next().await? {
            self.send(Message::QueuedFound(jobs(&self.log, &page))).await;
            if extent == ScanExtent::Newest {
                break;
            }
        }
        Ok(())
    }

    /// Scans running jobs: some of ours may have to be cancelled, and the workers of others may be dead.
    async fn scan_running(&mut self) -> Result<(), LogError> {
        let (mut by_worker, mut held) = (BTreeMap::<_, Vec<Job>>::new(), HashMap::new());
        let mut pages = self.pages(JobState::Running);
        while let Some(page) = pages.next().await? {
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
                        self.send(Message::Cancelled(job.clone())).await;
                    }
                    if is_older {
                        self.send(Message::RunningHere(job)).await;
                    }
                    continue;
                }
                by_worker.entry(worker.clone()).or_default().push(job);
            }
        }
        self.held_before = held;
        for (worker, jobs) in by_worker {
            if worker.home == self.home {
                // A home has one daemon at a time, so another worker with this home is dead.
                self.interrupt_stale(jobs, "the daemon that ran it is gone").await;
                continue;
            }
            match self
                .log
                .lease(&worker.lease_key, &self.boot, TAKEOVER_LEASE)
                .await
            {
                Ok(lease) => {
                    // The lease was free, so its holder is dead or has given up, and its writes are refused from
                    // now on.
                    self.interrupt_stale(jobs, "its worker has not been heard of")
                        .await;
                    drop(self.log.release(&lease).await);
                }
                Err(LeaseError::Held { .. }) => {}
                Err(LeaseError::Log(error)) => return Err(error),
                Err(error) => tracing::warn!(%error, "could not check the lease of another worker"),
            }
        }
        Ok(())
    }

    async fn interrupt_stale(&self, jobs: Vec<Job>, text: &str) {
        for job in jobs {
            let text = text.to_owned();
            let job = Box::new(job);
            self.send(Message::WorkerDead { job, text }).await;
        }
    }

    /// Rereads the lanes that jobs wait for here. They may have been freed elsewhere.
    async fn scan_full_lanes(&mut self) -> Result<(), LogError> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::FullLanes { answer }).await;
        let mut full = HashMap::new();
        for (name, seen) in answered.await.unwrap_or_default() {
            let stored = self.log.head(&history::lane_stream(&name)).await?;
            let Some(lane) = stored.as_ref().map(Lane::of) else {
                self.send(Message::LaneGone { name, seen }).await;
                continue;
            };
            let lane = match self.full_before.get(&name) == Some(&lane.version) {
                true => self.without_stale_jobs(&name, lane).await?,
                false => lane,
            };
            full.insert(Arc::clone(&name), lane.version);
            self.send(Message::Lane { name, lane }).await;
        }
        self.full_before = full;
        Ok(())
    }

    /// Removes jobs that aren't running from a lane.
    ///
    /// A job that ends leaves its lane in the same commit. So there are none, unless a damaged job was dropped,
    /// and then nothing else would ever free the lane.
    async fn without_stale_jobs(&self, name: &Arc<str>, lane: Lane) -> Result<Lane, LogError> {
        let mut running = lane.running.clone();
        for id in &lane.running {
            let job = match id.parse() {
                Ok(id) => Job::read(&self.log, id).await?,
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
                tracing::warn!(lane = %name, "a lane named jobs that are not running; removed them");
                let version = committed.version;
                Ok(Lane { version, running })
            }
            // The lane has changed, or is checked again soon.
            answer => {
                tracing::debug!(?answer, lane = %name, "could not remove stale jobs from a lane");
                Ok(lane)
            }
        }
    }

    /// Rereads jobs that ours wait for. They may have ended elsewhere.
    async fn scan_dependencies(&self) -> Result<(), LogError> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Dependencies { answer }).await;
        for id in answered.await.unwrap_or_default() {
            let job = Job::read(&self.log, id).await?;
            let state = job.map(|job| job.record.state.name());
            self.send(Message::DependencyState { id, state }).await;
        }
        Ok(())
    }

    fn pages(&self, state: JobState) -> HeadPages {
        self.log.pages(HeadsQuery {
            kind: Record::KIND.into(),
            status: Some(state.as_str().into()),
            after: None,
            limit: PAGE,
            order: HeadsOrder::NewestFirst,
        })
    }

    /// Only fails when the service is gone.
    async fn send(&self, message: Message) {
        if let Some(report) = self.report.upgrade() {
            drop(report.send(message).await);
        }
    }
}

fn jobs(log: &Log, page: &[StoredHead]) -> Vec<Job> {
    page.iter()
        .filter_map(|stored| Job::of_head(log, stored).ok())
        .collect()
}
