//! What a keeper says to its daemon, and its last word.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;

use crate::ended::Killed;
use crate::identity::{Sent, Target};
use crate::wire::{FromKeeper, encode};

/// The voice of a keeper. Clones are the same one, for both of its threads.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// Guards the socket, so that messages do not mix, and what had to be killed so far.
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    socket: UnixStream,
    killed: Killed,
}

impl Report {
    pub(super) fn new(socket: UnixStream) -> Self {
        let killed = Killed::default();
        Self {
            shared: Arc::new(Mutex::new(Shared { socket, killed })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills a process, and keeps in mind that it had to be. Nobody can have the last word in between, though the
    /// process may be reaped at once.
    pub(super) fn kill(&self, target: &Target, pid: u32, name: &str) -> Sent {
        let mut shared = self.lock();
        let sent = target.signal(Signal::KILL);
        if sent == Sent::Yes {
            shared.killed.add(pid, name);
        }
        sent
    }

    /// Says something. A daemon that is dead need not hear it, and the control thread finds out that it is.
    pub(super) fn say(&self, message: &FromKeeper) {
        drop(send(&self.lock().socket, message));
    }

    /// Says that it is over, and ends this process. Whichever thread gets here first holds the lock until then, so
    /// there is one last word.
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
