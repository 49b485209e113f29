//! What a keeper reports to its daemon, up to its final message.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;

use crate::ended::Killed;
use crate::identity::{SignalResult, Target};
use crate::wire::{FromKeeper, encode};

/// Sends messages to the daemon. Clones share one socket, for both threads of the keeper.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// The socket, so that messages don't mix, and what had to be killed so far.
    shared: Arc<Mutex<ReportShared>>,
}

#[derive(Debug)]
struct ReportShared {
    socket: UnixStream,
    killed: Killed,
}

impl Report {
    pub(super) fn new(socket: UnixStream) -> Self {
        let killed = Killed::default();
        Self {
            shared: Arc::new(Mutex::new(ReportShared { socket, killed })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReportShared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills a process, and records that. The final message can't be sent in between, although the process may be
    /// reaped at once.
    pub(super) fn kill(&self, target: &Target, pid: u32, name: &str) -> SignalResult {
        let mut shared = self.lock();
        let sent = target.signal(Signal::KILL);
        if sent == SignalResult::Yes {
            shared.killed.add(pid, name);
        }
        sent
    }

    /// Sends a message. If the daemon is dead, the control thread finds out.
    pub(super) fn say(&self, message: &FromKeeper) {
        drop(send(&self.lock().socket, message));
    }

    /// Sends the final message and exits. The first thread that gets here holds the lock until then, so there is
    /// only one final message.
    pub(super) fn say_last_and_exit(&self, left: Vec<u32>) -> ! {
        let mut shared = self.lock();
        let killed = std::mem::take(&mut shared.killed);
        drop(send(&shared.socket, &FromKeeper::Gone { killed, left }));
        std::process::exit(0)
    }
}

pub(super) fn send(mut socket: &UnixStream, message: &FromKeeper) -> io::Result<()> {
    socket.write_all(&encode(message)?)
}
