//! Runs strategies in parallel, so that no strategy can delay the others.
//!
//! Each strategy of a question is its own task. It waits for a worker, asks its circuit, and searches until it is done,
//! its own time is over, the deadline of the question passes, or the caller stops waiting. Then:
//!
//! 1. Its outcome is decided once, by the first to end it: the task itself, or the question that no longer waits
//!    (`stage.rs`). A later result changes nothing, neither in the answer nor in the circuit.
//! 2. The outcome is reported to the circuit in the same step. Failures are: an error, a panic, invalid results, too
//!    many results, no answer in time. A strategy that was cancelled, didn't apply, or never got a worker is neither a
//!    success nor a failure.
//! 3. What still runs is cancelled: futures are dropped, and threads see it in their scope. Until it has really
//!    ended, it keeps its worker (`permit.rs`), so that there are never more running strategies than workers, and
//!    its task stays, so that a shutdown waits for it.
//!
//! **Guaranteed:** the question is answered at its deadline, whatever the strategies do. **Not guaranteed:** work
//! on a thread that never checks its scope isn't stopped by force. It costs one worker until it ends.

mod check;
mod permit;
mod stage;
mod task;

pub use permit::on_thread;

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{CancellationToken, Cause, CircuitBreaker, Clock, Deadline, Scope};
use process::Tasks;
use tokio::sync::{Semaphore, oneshot};

use crate::answer::StrategyOutcome;
use crate::strategy::{Ask, Hit, Strategy, StrategyName};
use stage::{End, Stage};
use task::Task;

#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    pub strategy: StrategyName,
    pub outcome: StrategyOutcome,
    pub took: Duration,
    pub hits: Vec<Hit>,
}

/// Runs strategies: the step of the pipeline between the question and the findings. It is a trait so that the
/// acceptance tests can substitute the faulty algorithms from the reports.
#[async_trait]
pub trait Execute: Send + Sync + std::fmt::Debug {
    /// Runs the strategies, each within its own time and all of them until the deadline. The results are in the order
    /// of the strategies, no matter which finished first. *Cancel safety*: if the future is dropped, running strategies
    /// are cancelled.
    async fn run(
        &self,
        ask: &Arc<Ask>,
        strategies: &[(Arc<dyn Strategy>, Duration)],
        deadline: &Deadline,
        scope: &Scope,
    ) -> Vec<Ran>;

    fn clock(&self) -> &Arc<dyn Clock>;
}

/// Runs strategies in parallel. Clones share their workers.
#[derive(Clone, Debug)]
pub struct ParallelStrategyExecutor {
    /// One permit per running strategy, for all questions together; first come, first served.
    workers: Arc<Semaphore>,
    breakers: CircuitBreaker,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
}

impl ParallelStrategyExecutor {
    /// An executor with this many workers, at least one, for all questions together.
    #[must_use]
    pub fn new(workers: usize, breakers: CircuitBreaker, tasks: Tasks, clock: Arc<dyn Clock>) -> Self {
        let workers = workers.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            workers: Arc::new(Semaphore::new(workers)),
            breakers,
            tasks,
            clock,
        }
    }
}

#[async_trait]
impl Execute for ParallelStrategyExecutor {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// If the scope is cancelled, unfinished strategies are reported as out of time, and don't count as failures.
    async fn run(
        &self,
        ask: &Arc<Ask>,
        strategies: &[(Arc<dyn Strategy>, Duration)],
        deadline: &Deadline,
        scope: &Scope,
    ) -> Vec<Ran> {
        let question = CancelOnDrop(CancellationToken::new());
        let mut stages = Vec::with_capacity(strategies.len());
        let mut ends = Vec::with_capacity(strategies.len());
        for (strategy, timeout) in strategies {
            let stage = Arc::new(Stage::new(strategy.name()));
            let (ended, end) = oneshot::channel();
            let task = Task {
                strategy: Arc::clone(strategy),
                ask: Arc::clone(ask),
                timeout: *timeout,
                deadline: deadline.clone(),
                token: question.0.child(),
                stage: Arc::clone(&stage),
                workers: Arc::clone(&self.workers),
                breakers: self.breakers.clone(),
                clock: Arc::clone(&self.clock),
            };
            self.tasks.spawn("context-strategy", task.run(ended));
            stages.push(stage);
            ends.push(end);
        }
        let unfinished = wait(ends, deadline, scope).await;
        stages
            .iter()
            .map(|stage| {
                stage.end(unfinished.clone(), self.clock.now());
                stage.ran()
            })
            .collect()
    }
}

/// Waits until all have ended, or the caller no longer waits, and returns how the unfinished ones end.
async fn wait(ends: Vec<oneshot::Receiver<()>>, deadline: &Deadline, scope: &Scope) -> End {
    let mut all = pin!(async {
        for end in ends {
            // A task that ended without a result has died, which its stage reports below.
            let _ = end.await;
        }
    });
    let mut cancelled = pin!(scope.wait());
    let mut passed = pin!(deadline.clone().passed());
    std::future::poll_fn(|context| {
        if all.as_mut().poll(context).is_ready() {
            return Poll::Ready(End::Died);
        }
        if cancelled.as_mut().poll(context).is_ready() {
            return Poll::Ready(End::Cancelled);
        }
        passed.as_mut().poll(context).map(|()| End::Late)
    })
    .await
}

/// Cancels everything that runs for a question when the question is over, however it ends.
pub(crate) struct CancelOnDrop(pub(crate) CancellationToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0
            .cancel(Cause::new("question", "nobody waits for it any longer"));
    }
}
