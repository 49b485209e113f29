//! Returns freed memory to the system.
//!
//! The allocator keeps freed memory that lies between two live allocations, and hundreds of streams that end at once
//! leave a lot of it. An idle daemon would keep it forever.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Deadline, Scope};
use tokio::sync::Semaphore;

/// How many streams must have ended to make it worth the effort.
const STREAMS: u32 = 64;

/// How long to wait for others that end at the same time.
const TOGETHER: Duration = Duration::from_millis(500);

/// Counts streams that have ended.
#[derive(Clone, Debug)]
pub(super) struct MemoryTrimmer {
    /// One permit for each stream that has ended since memory was last returned.
    ended: Arc<Semaphore>,
}

impl MemoryTrimmer {
    pub(super) fn new() -> Self {
        Self {
            ended: Arc::new(Semaphore::new(0)),
        }
    }

    pub(super) fn stream_ended(&self) {
        self.ended.add_permits(1);
    }

    /// Returns memory whenever many streams have ended, until `stop` is cancelled.
    pub(super) async fn run(self, clock: Arc<dyn Clock>, stop: Scope) {
        loop {
            tokio::select! {
                biased;
                _ = stop.wait() => return,
                // The semaphore is never closed.
                ended = self.ended.acquire_many(STREAMS) => drop(ended),
            }
            tokio::select! {
                biased;
                _ = stop.wait() => return,
                () = Deadline::after(&clock, TOGETHER).passed() => {}
            }
            self.ended.forget_permits(self.ended.available_permits());
            // It scans all free memory, which takes a while.
            if let Err(error) = tokio::task::spawn_blocking(process::give_memory_back).await {
                tracing::warn!(%error, "memory was not given back");
            }
        }
    }
}
