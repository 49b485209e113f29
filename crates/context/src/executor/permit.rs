//! The worker permit of a strategy, which it holds until it has really ended.

use std::future::Future;

use kernel::Scope;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::check;
use crate::strategy::StrategyError;

tokio::task_local! {
    /// The permit of the strategy that this task runs. Threads that it starts take a share of it.
    static PERMIT: Share;
}

/// A worker's permit. It is released when all shares have been dropped.
#[derive(Debug)]
pub(super) struct WorkerPermit {
    share: Share,
    shares: mpsc::Receiver<()>,
    permit: OwnedSemaphorePermit,
}

/// A share of a permit. Nothing is ever sent: only dropping the last one matters.
type Share = mpsc::Sender<()>;

impl WorkerPermit {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        // The capacity is one, because zero isn't allowed.
        let (share, shares) = mpsc::channel(1);
        Self {
            share,
            shares,
            permit,
        }
    }

    /// Runs something under this permit: work that it starts on threads takes a share.
    pub(super) async fn holding<F: Future>(&self, work: F) -> F::Output {
        PERMIT.scope(self.share.clone(), work).await
    }

    /// Waits until everything that ran under this permit has ended, and releases it.
    pub(super) async fn ended(mut self) {
        drop(self.share);
        let nothing = self.shares.recv().await;
        debug_assert!(nothing.is_none(), "nothing is sent through a share");
        drop(self.permit);
    }
}

/// Runs something on a thread that may block. It must check its scope often. *Cancel safety*: if the future is
/// dropped, the work continues until it checks its scope, and the strategy keeps its worker until then. Work that
/// hasn't started when its scope is cancelled doesn't start.
///
/// # Errors
/// The error of the work, or an error if it panicked.
pub async fn on_thread<R: Send + 'static>(
    scope: Scope,
    work: impl FnOnce(&Scope) -> Result<R, StrategyError> + Send + 'static,
) -> Result<R, StrategyError> {
    // Outside of a strategy there is no permit.
    let share = PERMIT.try_with(Share::clone).ok();
    let done = tokio::task::spawn_blocking(move || {
        let done = if scope.is_cancelled() {
            Err(StrategyError::Cancelled)
        } else {
            work(&scope)
        };
        drop(share);
        done
    });
    done.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => Err(StrategyError::Failed(check::panic_text(&*panic))),
        // The runtime is shutting down.
        Err(_) => Err(StrategyError::Cancelled),
    })
}
