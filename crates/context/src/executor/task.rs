//! Runs one strategy, from the wait for a worker to the end of everything that it started.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kernel::{CancellationToken, Cause, CircuitBreaker, Clock, Deadline};
use tokio::sync::{Semaphore, oneshot};

use super::check;
use super::permit::WorkerPermit;
use super::stage::{End, Looking, Stage};
use crate::strategy::{Ask, Hit, Strategy, StrategyError};

pub(super) struct Task {
    pub(super) strategy: Arc<dyn Strategy>,
    pub(super) ask: Arc<Ask>,
    pub(super) timeout: Duration,
    pub(super) deadline: Deadline,
    pub(super) token: CancellationToken,
    pub(super) stage: Arc<Stage>,
    pub(super) workers: Arc<Semaphore>,
    pub(super) breakers: CircuitBreaker,
    pub(super) clock: Arc<dyn Clock>,
}

type TaskResult = Result<Result<Vec<Hit>, StrategyError>, Box<dyn Any + Send>>;

impl Task {
    /// Runs it. `ended` is notified when the outcome is decided; the task continues until everything it started has
    /// ended.
    pub(super) async fn run(self, ended: oneshot::Sender<()>) {
        match self.permit().await {
            Err(end) => self.stage.end(end, self.clock.now()),
            Ok(permit) => {
                self.look(&permit, ended).await;
                permit.ended().await;
            }
        }
    }

    /// Waits for a worker, unless that is pointless.
    async fn permit(&self) -> Result<WorkerPermit, End> {
        let circuit = self.stage_circuit();
        // Don't wait for a worker only to find that there is nothing to do. This is only a hint: the breaker
        // decides once there is a worker.
        if self.breakers.is_open(&circuit)
            && let Err(open) = self.breakers.acquire(&circuit)
        {
            return Err(End::Open(open.retry_after));
        }
        if self.deadline.has_passed() {
            return Err(End::Late);
        }
        let mut worker = pin!(Arc::clone(&self.workers).acquire_owned());
        let mut cancelled = pin!(self.token.wait());
        let mut passed = pin!(self.deadline.clone().passed());
        std::future::poll_fn(|context| {
            if cancelled.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(End::Cancelled));
            }
            if passed.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(End::Late));
            }
            // The semaphore is never closed.
            let worker = worker.as_mut().poll(context);
            worker.map(|permit| permit.map(WorkerPermit::new).map_err(|_| End::Cancelled))
        })
        .await
    }

    async fn look(&self, worker: &WorkerPermit, ended: oneshot::Sender<()>) {
        let permit = match self.breakers.acquire(&self.stage_circuit()) {
            Ok(permit) => permit,
            Err(open) => return self.stage.end(End::Open(open.retry_after), self.clock.now()),
        };
        let own_time = self
            .deadline
            .remaining()
            .is_none_or(|left| self.timeout < left)
            .then_some(self.timeout);
        let limit = own_time.map_or_else(
            || self.deadline.clone(),
            |time| Deadline::after(&self.clock, time),
        );
        let looking = Looking {
            permit,
            since: self.clock.now(),
            own_time,
        };
        if self.stage.begin(looking).is_err() {
            return;
        }
        let scope = self.token.scope();
        let find = async {
            let find = self
                .strategy
                .find(Arc::clone(&self.ask), scope.clone(), limit.clone());
            find.await
        };
        let mut find = pin!(worker.holding(Caught(Box::pin(find))));
        let mut cancelled = pin!(scope.wait());
        let mut passed = pin!(limit.clone().passed());
        let end = std::future::poll_fn(|context| {
            // A finished search counts, even if its time ends at the same moment.
            if let Poll::Ready(result) = find.as_mut().poll(context) {
                return Poll::Ready(self.end_of(result, &limit));
            }
            if cancelled.as_mut().poll(context).is_ready() {
                return Poll::Ready(End::Cancelled);
            }
            passed.as_mut().poll(context).map(|()| End::Late)
        })
        .await;
        self.stage.end(end, self.clock.now());
        // The caller continues now. The rest of the search is cancelled, and dropped after that.
        drop(ended);
        self.token.cancel(Cause::deadline());
    }

    fn end_of(&self, result: TaskResult, limit: &Deadline) -> End {
        match result {
            Ok(Ok(hits)) => match check::checked(hits, self.ask.most_hits) {
                Ok(hits) => End::Found(hits),
                Err(why) => End::Failed(why),
            },
            Ok(Err(StrategyError::NotApplicable(why))) => End::NotApplicable(check::bounded(&why)),
            Ok(Err(StrategyError::Failed(why))) => End::Failed(check::bounded(&why)),
            Ok(Err(StrategyError::Cancelled)) if self.token.is_cancelled() => End::Cancelled,
            Ok(Err(StrategyError::Cancelled)) if limit.has_passed() => End::Late,
            Ok(Err(StrategyError::Cancelled)) => {
                End::Failed("it gave up, and nobody had asked it to".to_owned())
            }
            Err(panic) => End::Failed(check::panic_text(&*panic)),
        }
    }

    fn stage_circuit(&self) -> String {
        self.strategy.name().circuit()
    }
}

struct Caught<F>(Pin<Box<F>>);

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic, the future is dropped and never polled again, so its inconsistent state is never
        // observed.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}
