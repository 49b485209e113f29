//! Backoff between retries while the log fails.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Deadline};

/// The first pause: most failures are brief.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause, and so the longest time until a recovered log is noticed.
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses between retries, each twice as long as the one before, up to a limit.
#[derive(Debug)]
pub(crate) struct LogPause {
    next: Duration,
}

impl LogPause {
    pub(crate) fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// Starts over with a short pause, because the log has answered.
    pub(crate) fn reset(&mut self) {
        self.next = SHORTEST;
    }

    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn wait(&mut self, clock: &Arc<dyn Clock>) {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        Deadline::after(clock, pause).passed().await;
    }
}
