//! A backlog of no-op jobs, submitted and then run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use eventlog::{Log, PostgresOptions, SqliteOptions};
use jobs::{Handler, Jobs, JobsOptions, NewJob, Sharing};
use kernel::{Deadline, SystemClock};
use process::Tasks;
use protocol::{BootId, HomeId, JobIfInterrupted};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::handlers::NoOp;
use crate::statistics::nanoseconds;

/// The name of the one handler.
pub(super) const HANDLER: &str = "no-op";
/// How many tasks submit at once. Each waits until its job is on disk before it submits the next one.
const SUBMITTERS: usize = 64;
const LEASE: Duration = Duration::from_secs(10);
/// How often to check whether the last end is on disk.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// The longest queue takes a few seconds.
const RUN_WITHIN: Duration = Duration::from_secs(300);
const END_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum Store<'a> {
    Sqlite(&'a Path),
    Postgres(PostgresOptions),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) jobs: usize,
    pub(super) workers: usize,
    pub(super) if_interrupted: JobIfInterrupted,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PerJob {
    pub(super) submit: f64,
    /// From the moment when the workers start on the backlog.
    pub(super) drain: f64,
}

impl PerJob {
    pub(super) fn figures(self) -> [f64; 2] {
        [self.drain, self.submit + self.drain]
    }
}

pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.context("cannot start a runtime")
}

pub(super) struct Service {
    pub(super) jobs: Jobs,
    tasks: Tasks,
}

impl Service {
    pub(super) async fn open(
        store: &Store<'_>,
        handler: Arc<dyn Handler>,
        max_workers: usize,
    ) -> Result<Self> {
        let clock = SystemClock::shared();
        let (log, sharing) = match store {
            Store::Sqlite(directory) => {
                let path = directory.join("log.sqlite3");
                let log = Log::open_sqlite(&SqliteOptions { path }, clock.clone())?;
                (log, Sharing::Alone)
            }
            Store::Postgres(options) => (Log::open_postgres(options).await?, Sharing::WithOthers),
        };
        let tasks = Tasks::default();
        let jobs = Jobs::open(JobsOptions {
            log,
            sharing,
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            handlers: BTreeMap::from([(Arc::from(HANDLER), handler)]),
            max_workers,
            lease: LEASE,
            tasks: tasks.clone(),
            clock,
        })
        .await?;
        Ok(Self { jobs, tasks })
    }

    /// Ends the service and waits for it, so that its last work does not fall into another contender's turn.
    pub(super) async fn close(self) {
        self.jobs.drain(&Deadline::never()).await;
        drop(self.jobs);
        self.tasks.finished().await;
    }
}

impl Load {
    /// Submits all jobs, then lets the workers run until the end of the last one is on disk.
    pub(super) fn run(self, runtime: &Runtime, store: &Store<'_>) -> Result<PerJob> {
        runtime.block_on(async {
            let no_op = NoOp::of(self.jobs);
            let service = Service::open(store, Arc::clone(&no_op) as Arc<dyn Handler>, 0).await?;
            let began = Instant::now();
            self.submit(&service.jobs).await?;
            let submitted = Instant::now();
            service.jobs.set_max_workers(self.workers).await;
            tokio::time::timeout(RUN_WITHIN, no_op.all_ran())
                .await
                .context("not every job ran")?;
            self.all_ended(&service.jobs).await?;
            let drained = Instant::now();
            service.close().await;
            let per_job = |time: Duration| nanoseconds(time) / self.jobs as f64;
            Ok(PerJob {
                submit: per_job(submitted - began),
                drain: per_job(drained - submitted),
            })
        })
    }

    async fn submit(self, jobs: &Jobs) -> Result<()> {
        let mut submitters = JoinSet::new();
        for submitter in 0..SUBMITTERS.min(self.jobs) {
            let jobs = jobs.clone();
            submitters.spawn(async move {
                for _ in (submitter..self.jobs).step_by(SUBMITTERS) {
                    let mut job = NewJob::new(HANDLER, "nothing", b"0".to_vec(), "bench");
                    job.facts.if_interrupted = self.if_interrupted;
                    jobs.submit(job).await?;
                }
                anyhow::Ok(())
            });
        }
        submitters.join_all().await.into_iter().collect()
    }

    async fn all_ended(self, jobs: &Jobs) -> Result<()> {
        let began = Instant::now();
        while jobs.counts().succeeded < self.jobs as u64 {
            ensure!(
                began.elapsed() < END_WITHIN,
                "the last job ran and did not end: {:?}",
                jobs.counts()
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn every_job_is_submitted_and_done() {
        let runtime = runtime().unwrap();
        for (jobs, if_interrupted) in [(1, JobIfInterrupted::Fail), (130, JobIfInterrupted::Repeat)] {
            let directory = TempDir::new().unwrap();
            let load = Load {
                jobs,
                workers: 2,
                if_interrupted,
            };
            let per_job = load.run(&runtime, &Store::Sqlite(directory.path())).unwrap();
            assert!(per_job.submit > 0.0 && per_job.drain > 0.0, "{per_job:?}");
            let connection = rusqlite::Connection::open(directory.path().join("log.sqlite3")).unwrap();
            let query = "SELECT count(*) FROM streams WHERE kind = 'job' AND status = 'succeeded'";
            let succeeded: usize = connection.query_row(query, [], |row| row.get(0)).unwrap();
            assert_eq!(succeeded, jobs);
        }
    }
}
