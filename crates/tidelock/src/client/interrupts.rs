//! Ctrl-C, for commands that have something to do about it.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Client;

/// Each Ctrl-C, once. By default there is none: the process is then ended by it, as usual.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    signals: Option<Signal>,
}

impl Interrupts {
    /// The next one. One that came while nobody waited counts.
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

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    /// The time is over.
    Whole,
    /// Somebody pressed Ctrl-C.
    UntilInterrupted,
}

impl Client {
    /// From now on Ctrl-C no longer ends the process.
    pub(crate) fn catch_interrupts(&self) -> io::Result<Interrupts> {
        let _inside = self.runtime.enter();
        let signals = Some(signal(SignalKind::interrupt())?);
        Ok(Interrupts { signals })
    }

    /// Waits for a while, or for Ctrl-C.
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
