//! The handlers of the benchmark's jobs: they do nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use jobs::{AttemptOutcome, AttemptVerdict, Handler, Work};
use tokio::sync::{Notify, mpsc};

/// Counts jobs, and signals when all of them have run.
#[derive(Debug)]
pub(super) struct NoOp {
    left: AtomicUsize,
    all_ran: Notify,
}

impl NoOp {
    pub(super) fn of(jobs: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(jobs),
            all_ran: Notify::new(),
        })
    }

    pub(super) async fn all_ran(&self) {
        self.all_ran.notified().await;
    }
}

#[async_trait]
impl Handler for NoOp {
    async fn run(&self, _work: Work) -> AttemptOutcome {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_ran.notify_one();
        }
        done()
    }
}

#[derive(Debug)]
pub(super) struct Tell {
    pub(super) started: mpsc::Sender<Instant>,
}

#[async_trait]
impl Handler for Tell {
    async fn run(&self, _work: Work) -> AttemptOutcome {
        // If there is no receiver, the measurement is over.
        self.started.send(Instant::now()).await.ok();
        done()
    }
}

fn done() -> AttemptOutcome {
    AttemptOutcome {
        verdict: AttemptVerdict::Succeeded,
        text: String::new(),
        result: serde_json::Value::Null,
    }
}
