//! How long it is waited before a log that failed is asked again.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Deadline};

/// The first pause: most failures are over in a moment.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest one: how long it takes at most until it is noticed that the log is back.
const LONGEST: Duration = Duration::from_secs(2);

/// Pauses between tries, each twice as long as the one before, up to a limit.
#[derive(Debug)]
pub(crate) struct LogPause {
    next: Duration,
}

impl LogPause {
    pub(crate) fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// The log has answered: the next pause is a short one again.
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
