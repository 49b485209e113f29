//! What the jobs of the benchmark do: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use jobs::{Handler, Outcome, Verdict, Work};
use tokio::sync::{Notify, mpsc};

/// Counts jobs, and tells when all of them have run.
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
    async fn run(&self, _work: Work) -> Outcome {
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
    async fn run(&self, _work: Work) -> Outcome {
        // Whoever measures has gone if nobody listens.
        self.started.send(Instant::now()).await.ok();
        done()
    }
}

fn done() -> Outcome {
    Outcome {
        verdict: Verdict::Succeeded,
        text: String::new(),
        result: serde_json::Value::Null,
    }
}
