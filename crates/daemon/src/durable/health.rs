//! Whether the log accepts writes, and its size when it was last measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::{LeaseError, Log, LogError, Sizes};
use kernel::{Clock, Slot};
use protocol::{BootId, HomeId};

/// How long to wait before trying another write on a log that refuses them.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Health {
    log: Log,
    clock: Arc<dyn Clock>,
    /// The lease to write as a probe: it changes nothing but the counter of that lease.
    probe: (String, String),
    tried_at: Slot<Option<Instant>>,
    measured: Slot<Option<Measured>>,
}

#[derive(Clone, Debug)]
struct Measured {
    sizes: Sizes,
    at: Instant,
}

impl Health {
    pub(crate) fn new(log: Log, clock: Arc<dyn Clock>, home_id: HomeId, boot_id: BootId) -> Self {
        Self {
            log,
            clock,
            probe: (format!("probe/{home_id}"), boot_id.to_string()),
            tried_at: Slot::new(None),
            measured: Slot::new(None),
        }
    }

    /// Why the log refuses writes, if it does.
    pub(crate) fn refusal(&self) -> Option<LogError> {
        match self.log.health() {
            eventlog::Health::Writable => None,
            eventlog::Health::Refusing { reason } => Some(reason),
        }
    }

    /// The same, but tries a write now and then if the log refuses them, to notice soon when it recovers.
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn refusal_now(&self) -> Option<LogError> {
        let refusal = self.refusal()?;
        let (seen, now) = (self.tried_at.read(), self.clock.now());
        let is_due = seen
            .state
            .is_none_or(|tried_at| now.saturating_duration_since(tried_at) >= TRY_AGAIN_AFTER);
        // Of several concurrent callers, one tries.
        if !is_due || self.tried_at.transition(seen.generation, Some(now)).is_err() {
            return Some(refusal);
        }
        let (key, owner) = &self.probe;
        match self.log.lease(key, owner, Duration::ZERO).await {
            Err(LeaseError::Log(error)) => Some(error),
            _ => self.refusal(),
        }
    }

    /// How large the log was when it was last measured.
    pub(crate) fn last_sizes(&self) -> Option<Sizes> {
        (*self.measured.read().state)
            .as_ref()
            .map(|measured| measured.sizes.clone())
    }

    /// The size of the log, measured at most `max_age` ago.
    pub(crate) async fn sizes(&self, max_age: Duration) -> Result<Sizes, LogError> {
        if let Some(measured) = &*self.measured.read().state
            && self.clock.now().saturating_duration_since(measured.at) < max_age
        {
            return Ok(measured.sizes.clone());
        }
        self.measure().await
    }

    pub(crate) async fn measure(&self) -> Result<Sizes, LogError> {
        let sizes = self.log.sizes().await?;
        let measured = Measured {
            sizes: sizes.clone(),
            at: self.clock.now(),
        };
        // If another caller was faster, its result is just as good.
        let seen = self.measured.read();
        drop(self.measured.transition(seen.generation, Some(measured)));
        Ok(sizes)
    }
}

pub(crate) fn sizes_to_wire(sizes: &Sizes) -> protocol::LogSizes {
    protocol::LogSizes {
        total_bytes: sizes.total_bytes,
        free_bytes: sizes.free_bytes,
        wal_bytes: sizes.wal_bytes,
        streams: sizes.streams,
        events: sizes.events,
        blobs: sizes.blobs,
        blob_bytes: sizes.blob_bytes,
    }
}
