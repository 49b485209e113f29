//! Changes below a prefix, for caches of many streams that have to know when to look again.

use std::sync::Arc;

use kernel::{Cause, Deadline, HeldSlot, Scope, WaitError};

/// Tells when streams below a prefix are written or removed. It is level-triggered: several changes may be
/// reported as one, and a report may come without a change, but no change after
/// [`Log::changes`](crate::Log::changes) goes unreported. On a shared database, changes of other processes may be
/// reported some seconds late after a lost connection.
///
/// What is reported can be read.
#[derive(Debug)]
pub struct StreamChanges {
    /// How many times something has changed.
    count: HeldSlot<Arc<str>, u64>,
    /// The count that was reported last.
    told: u64,
}

/// A wait ended without a change.
#[derive(Debug, thiserror::Error)]
pub enum ChangesEnd {
    /// The deadline passed.
    #[error("nothing changed before the deadline")]
    DeadlineExceeded,
    /// The waiter's scope was cancelled.
    #[error("the wait was cancelled by {0}")]
    Cancelled(Arc<Cause>),
}

impl StreamChanges {
    pub(crate) fn new(count: HeldSlot<Arc<str>, u64>) -> Self {
        let told = *count.read().state;
        Self { count, told }
    }

    /// Waits until something has changed since the last report, or since the beginning. *Cancel safety*: if the
    /// future is dropped, nothing is missed.
    pub async fn next(&mut self, deadline: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        let told = self.told;
        let moved = self
            .count
            .wait_until(move |count| *count != told, deadline, scope);
        match moved.await {
            Ok(seen) => {
                self.told = *seen.state;
                Ok(())
            }
            Err(WaitError::Cancelled { cause, .. }) => Err(ChangesEnd::Cancelled(cause)),
            Err(WaitError::DeadlineExceeded { .. }) => Err(ChangesEnd::DeadlineExceeded),
        }
    }
}
