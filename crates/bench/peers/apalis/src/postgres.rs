//! apalis-postgres.

use std::time::Instant;

use anyhow::Result;
use apalis::prelude::*;
use apalis_postgres::{PgPool, PostgresStorage};

use crate::worker::{Tally, no_op, per_job};

pub(crate) async fn drain(url: &str, jobs: usize, workers: usize) -> Result<Vec<f64>> {
    let pool = PgPool::connect(url).await?;
    PostgresStorage::setup(&pool).await?;
    let mut storage = PostgresStorage::<usize>::new(&pool);
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
