//! apalis-sqlite.

use std::str::FromStr as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use apalis::prelude::*;
use apalis_sqlite::{SqliteConnectOptions, SqlitePool, SqliteStorage};
use tokio::sync::mpsc;

use crate::worker::{Tally, no_op, per_job, tell};

/// A job that does not start within this time has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the queue is left alone between two pushes.
const REST: Duration = Duration::from_millis(20);

/// A database with its tables. Its own setup turns syncing off for the connection that it happens to get; `full` is
/// what a queue has to do that is durable.
async fn connect(synchronous: &str, file: &str) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::from_str(file)?.create_if_missing(true);
    let pool = SqlitePool::connect_with(options.clone()).await?;
    SqliteStorage::setup(&pool).await?;
    match synchronous {
        "default" => Ok(pool),
        "full" => {
            pool.close().await;
            Ok(SqlitePool::connect_with(options.pragma("synchronous", "FULL")).await?)
        }
        other => bail!("`{other}` is neither `full` nor `default`"),
    }
}

pub(crate) async fn drain(synchronous: &str, file: &str, jobs: usize, workers: usize) -> Result<Vec<f64>> {
    let pool = connect(synchronous, file).await?;
    let mut storage = SqliteStorage::<usize>::new(&pool);
    let began = Instant::now();
    storage.push_bulk((0..jobs).collect()).await?;
    let submitted = Instant::now();
    let tally = Tally::of(jobs);
    for number in 0..workers {
        let worker = WorkerBuilder::new(format!("worker-{number}"))
            .backend(storage.clone())
            .data(tally.clone())
            .build(no_op);
        tokio::spawn(worker.run());
    }
    tally.all_ran().await;
    Ok(per_job(jobs, began, submitted))
}

/// How long it takes from a push to the start of the handler, with the hook that it has for low latency.
pub(crate) async fn idle(file: &str, pushes: usize) -> Result<Vec<f64>> {
    connect("full", file).await?.close().await;
    let (pool, listener) = SqliteStorage::connect_with_callback(file)?;
    let mut storage = SqliteStorage::<usize>::new(&pool);
    let (started, mut starts) = mpsc::channel::<Instant>(1);
    let worker = WorkerBuilder::new("worker")
        .backend(storage.clone().with_callback(listener))
        .data(started)
        .build(tell);
    tokio::spawn(worker.run());
    let mut figures = Vec::with_capacity(pushes);
    for number in 0..=pushes {
        tokio::time::sleep(REST).await;
        let pushed = Instant::now();
        storage.push(number).await?;
        let started = tokio::time::timeout(PATIENCE, starts.recv()).await;
        let started = started
            .context("a job did not start")?
            .context("the worker ended")?;
        // The first one also starts the worker.
        if number > 0 {
            figures.push((started - pushed).as_secs_f64() * 1e9);
        }
    }
    Ok(figures)
}
