//! Notice of changes, for whoever shows the servers.

use std::sync::Arc;

use kernel::{Cause, Deadline, Scope, Slot, WaitError};

use crate::LifecycleError;

/// Tells that something changed, never what: whoever wakes looks at the list. Nothing piles up for a slow reader.
#[derive(Clone, Debug)]
pub struct Changes {
    count: Slot<u64>,
    seen: u64,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            count: Slot::new(0),
            seen: 0,
        }
    }

    /// The same changes, from now on.
    pub(crate) fn subscribe(&self) -> Self {
        Self {
            count: self.count.clone(),
            seen: *self.count.read().state,
        }
    }

    /// Notes a change that has been made.
    pub(crate) fn note(&self) {
        let seen = self.count.read();
        // Refused means that somebody else has noted a change after ours was made: whoever wakes from it sees ours.
        self.count.transition(seen.generation, *seen.state + 1).ok();
    }

    /// Waits until the count of changes is another one than the caller saw, and returns it.
    ///
    /// *Cancel safety*: may be dropped at any time; no change is lost.
    pub async fn since(&self, seen: u64, scope: &Scope) -> Result<u64, Arc<Cause>> {
        let changed = self
            .count
            .wait_until(|count| *count != seen, Deadline::never(), scope)
            .await;
        match changed {
            Ok(now) => Ok(*now.state),
            // There is no deadline, so the second is not reached.
            Err(WaitError::Cancelled { cause, .. }) => Err(cause),
            Err(WaitError::DeadlineExceeded { last }) => Ok(*last.state),
        }
    }

    /// Waits until something has changed since the last call, or since this was made.
    ///
    /// *Cancel safety*: may be dropped at any time; no change is lost.
    pub async fn changed(&mut self, scope: &Scope) -> Result<(), LifecycleError> {
        let seen = self.seen;
        let waited = self
            .count
            .wait_until(|count| *count != seen, Deadline::never(), scope)
            .await;
        match waited {
            Ok(now) => {
                self.seen = *now.state;
                Ok(())
            }
            Err(kernel::WaitError::Cancelled { cause, .. }) => Err(LifecycleError::Cancelled { cause }),
            // There is no deadline, so this is not reached; to look once more does no harm.
            Err(kernel::WaitError::DeadlineExceeded { .. }) => Ok(()),
        }
    }
}
