//! The handler, and the clock around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apalis::prelude::*;
use tokio::sync::{Notify, mpsc};

/// Counts jobs, and tells when all of them have run.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    left: Arc<AtomicUsize>,
    all_ran: Arc<Notify>,
}

impl Tally {
    pub(crate) fn of(jobs: usize) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(jobs)),
            all_ran: Arc::default(),
        }
    }

    pub(crate) async fn all_ran(&self) {
        self.all_ran.notified().await;
    }
}

/// A job that does nothing.
pub(crate) async fn no_op(_: usize, tally: Data<Tally>) -> Result<(), BoxDynError> {
    if tally.left.fetch_sub(1, Ordering::AcqRel) == 1 {
        tally.all_ran.notify_one();
    }
    Ok(())
}

/// A job that says when it started.
pub(crate) async fn tell(_: usize, started: Data<mpsc::Sender<Instant>>) -> Result<(), BoxDynError> {
    started.send(Instant::now()).await?;
    Ok(())
}

/// How long submitting all took, and how long it took from then until all had run, for each job.
pub(crate) fn per_job(jobs: usize, began: Instant, submitted: Instant) -> Vec<f64> {
    let per_job = |time: Duration| time.as_secs_f64() * 1e9 / jobs as f64;
    vec![per_job(submitted - began), per_job(submitted.elapsed())]
}
