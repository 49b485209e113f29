//! Signals of the process.

use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::options::Signals;

/// Waits for signals that end the process. They are caught from the moment this is created.
#[derive(Debug)]
pub(crate) struct SignalWatch {
    watched: Option<Watched>,
}

#[derive(Debug)]
struct Watched {
    terminate: Signal,
    interrupt: Signal,
}

impl SignalWatch {
    pub(crate) fn new(signals: Signals) -> io::Result<Self> {
        let watched = match signals {
            Signals::LeaveAlone => None,
            Signals::Stop => Some(Watched {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            }),
        };
        Ok(Self { watched })
    }

    /// The name of the next signal.
    ///
    /// *Cancel safety*: may be dropped at any time; the next call returns a signal that has already arrived.
    pub(crate) async fn next(&mut self) -> &'static str {
        let Some(watched) = &mut self.watched else {
            return pending().await;
        };
        tokio::select! {
            Some(()) = watched.terminate.recv() => "SIGTERM",
            Some(()) = watched.interrupt.recv() => "SIGINT",
            else => pending().await,
        }
    }
}
