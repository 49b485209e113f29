//! Something below a prefix has moved: for whoever keeps a copy of many streams, and looks again when it may be old.

use std::sync::Arc;

use kernel::{Cause, Deadline, Held, Scope, WaitError};

/// Tells that streams below a prefix were written or removed. It is a level: several changes may be told as one, and
/// it may be told without a change, but none that comes after [`Log::moved`](crate::Log::moved) stays untold. On a
/// database that others share, a change of theirs may be told late, by some seconds, after a connection was lost.
///
/// What is told of is there to be read.
#[derive(Debug)]
pub struct Moves {
    /// How often something has moved.
    count: Held<Arc<str>, u64>,
    /// The count up to which it was told.
    told: u64,
}

/// Nothing has moved, and the wait is over.
#[derive(Debug, thiserror::Error)]
pub enum MovesEnd {
    /// The deadline passed.
    #[error("nothing moved before the deadline")]
    DeadlineExceeded,
    /// The scope of the waiter was cancelled.
    #[error("the wait was cancelled by {0}")]
    Cancelled(Arc<Cause>),
}

impl Moves {
    pub(crate) fn new(count: Held<Arc<str>, u64>) -> Self {
        let told = *count.read().state;
        Self { count, told }
    }

    /// Waits until something has moved since it was last told, or since the beginning. *Cancel safety*: dropped
    /// half-way, nothing is missed.
    pub async fn next(&mut self, deadline: Deadline, scope: &Scope) -> Result<(), MovesEnd> {
        let told = self.told;
        let moved = self
            .count
            .wait_until(move |count| *count != told, deadline, scope);
        match moved.await {
            Ok(seen) => {
                self.told = *seen.state;
                Ok(())
            }
            Err(WaitError::Cancelled { cause, .. }) => Err(MovesEnd::Cancelled(cause)),
            Err(WaitError::DeadlineExceeded { .. }) => Err(MovesEnd::DeadlineExceeded),
        }
    }
}
