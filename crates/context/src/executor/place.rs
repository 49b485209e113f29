//! The place of a strategy among the workers, which it keeps until it has really ended.

use std::future::Future;

use kernel::Scope;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::check;
use crate::strategy::StrategyError;

tokio::task_local! {
    /// The place of the strategy that this task runs. Threads that it starts take a share of it with them.
    static PLACE: Share;
}

/// A worker's place. It is free again when all shares in it are gone.
#[derive(Debug)]
pub(super) struct Place {
    share: Share,
    shares: mpsc::Receiver<()>,
    /// The permit of the worker.
    permit: OwnedSemaphorePermit,
}

/// A share in a place. Nothing is ever sent: that the last one is gone is all that is heard.
type Share = mpsc::Sender<()>;

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        // Room for one, because none is not allowed.
        let (share, shares) = mpsc::channel(1);
        Self {
            share,
            shares,
            permit,
        }
    }

    /// Does something at this place: what it starts on threads takes a share.
    pub(super) async fn holding<F: Future>(&self, work: F) -> F::Output {
        PLACE.scope(self.share.clone(), work).await
    }

    /// Waits until nothing is left of what was done at this place, and gives it back.
    pub(super) async fn ended(mut self) {
        drop(self.share);
        let nothing = self.shares.recv().await;
        debug_assert!(nothing.is_none(), "nothing is sent through a share");
        drop(self.permit);
    }
}

/// Does something that blocks, on a thread where that may be. It must look at its scope often. *Cancel safety*: dropped
/// half-way, the work goes on until it looks at its scope, and the strategy keeps its worker until then. Work that has not
/// begun when its scope is cancelled does not begin.
///
/// # Errors
/// What the work says, or that it panicked.
pub async fn on_thread<R: Send + 'static>(
    scope: Scope,
    work: impl FnOnce(&Scope) -> Result<R, StrategyError> + Send + 'static,
) -> Result<R, StrategyError> {
    // Outside of a strategy there is no place to keep.
    let share = PLACE.try_with(Share::clone).ok();
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
        // The runtime ends.
        Err(_) => Err(StrategyError::Cancelled),
    })
}
