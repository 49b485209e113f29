//! A notification about changes, for views of the servers.

use std::sync::Arc;

use kernel::{Cause, Deadline, Scope, Slot, WaitError};

use crate::LifecycleError;

/// Tells that something changed, but not what: a reader that wakes up looks at the list. So nothing accumulates
/// for slow readers.
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

    /// A handle that counts changes from now on.
    pub(crate) fn subscribe(&self) -> Self {
        Self {
            count: self.count.clone(),
            seen: *self.count.read().state,
        }
    }

    /// Records a change that has been made.
    pub(crate) fn note(&self) {
        let seen = self.count.read();
        // If the write is refused, somebody else recorded a change after ours was made, so its readers see ours
        // too.
        self.count.transition(seen.generation, *seen.state + 1).ok();
    }

    /// Waits until the count of changes differs from the one that the caller saw, and returns it.
    ///
    /// *Cancel safety*: the future may be dropped at any time; no change is lost.
    pub async fn since(&self, seen: u64, scope: &Scope) -> Result<u64, Arc<Cause>> {
        let changed = self
            .count
            .wait_until(|count| *count != seen, Deadline::never(), scope)
            .await;
        match changed {
            Ok(now) => Ok(*now.state),
            // The deadline never passes, so the second arm is unreachable.
            Err(WaitError::Cancelled { cause, .. }) => Err(cause),
            Err(WaitError::DeadlineExceeded { last }) => Ok(*last.state),
        }
    }

    /// Waits until something has changed since the last call, or since this handle was created.
    ///
    /// *Cancel safety*: the future may be dropped at any time; no change is lost.
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
            // The deadline never passes, so this is unreachable; looking once more does no harm.
            Err(kernel::WaitError::DeadlineExceeded { .. }) => Ok(()),
        }
    }
}
