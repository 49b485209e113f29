//! Ctrl-C, for commands that handle it.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Client;

/// Yields each Ctrl-C once. The default catches none: Ctrl-C then ends the process, as usual.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    signals: Option<Signal>,
}

impl Interrupts {
    /// Waits for the next Ctrl-C. One that arrived before the call counts.
    pub(super) async fn next(&mut self) {
        let came = match &mut self.signals {
            Some(signals) => signals.recv().await,
            None => None,
        };
        if came.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    /// The full time has passed.
    Whole,
    /// The user pressed Ctrl-C.
    UntilInterrupted,
}

impl Client {
    /// From now on Ctrl-C no longer ends the process.
    pub(crate) fn catch_interrupts(&self) -> io::Result<Interrupts> {
        let _inside = self.runtime.enter();
        let signals = Some(signal(SignalKind::interrupt())?);
        Ok(Interrupts { signals })
    }

    /// Waits for `time`, or until Ctrl-C.
    pub(crate) fn pause(&self, time: Duration, interrupts: &mut Interrupts) -> Paused {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = interrupts.next() => Paused::UntilInterrupted,
                () = tokio::time::sleep(time) => Paused::Whole, // tidy: nobody tells when a daemon is started by somebody else
            }
        })
    }
}
