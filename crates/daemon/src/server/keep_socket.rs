//! Recreates the socket if it or the runtime directory is removed.
//!
//! The kernel reports removals from the directory, so nothing is polled.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kernel::{Clock, Deadline, Scope};
use protocol::BootId;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::UnixListener;
use tokio::net::unix::pipe::Receiver;

use super::bind::{SocketFile, bind_unix};
use crate::home::Home;
use crate::ownership::Ownership;

/// How long to wait after a removal, so that the process that removes files can finish.
const SETTLE: Duration = Duration::from_millis(200);
/// More than the largest kernel event.
const EVENT_BYTES: usize = 4096;

/// A socket, and the lock of the home if it had to be taken again, too.
type Made = (SocketFile, Option<Ownership>);

/// The recreated sockets and locks. They are removed when the daemon ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remade {
    /// Guards the list; held only for a push.
    made: Arc<Mutex<Vec<Made>>>,
}

#[derive(Debug)]
pub(crate) enum Kept {
    /// The socket was recreated; listen on it.
    Again(UnixListener),
    /// The whole home was removed, and with it all state of the daemon.
    HomeGone,
}

#[derive(Debug)]
pub(crate) struct SocketKeeper {
    pub(crate) home: Home,
    pub(crate) boot_id: BootId,
    pub(crate) remade: Remade,
}

impl SocketKeeper {
    /// Waits until the socket is removed, and recreates it. Returns `None` when the daemon stops, or if it can't be done,
    /// which is logged. *Cancel safety*: may be dropped at any time.
    pub(crate) async fn next(&self, clock: &Arc<dyn Clock>, stop: &Scope) -> Option<Kept> {
        let mut waited = self.watch();
        // It may have been removed before the watch started.
        while self.home.socket().exists() {
            let watched = match &waited {
                Ok(watched) => watched,
                Err(error) => {
                    tracing::warn!(%error, "cannot watch the socket; it will not be recreated if somebody removes it");
                    return None;
                }
            };
            let went = tokio::select! {
                _ = stop.wait() => return None,
                went = something_went(watched) => went,
            };
            if let Err(error) = went {
                waited = Err(error);
                continue;
            }
            tokio::select! {
                _ = stop.wait() => return None,
                () = Deadline::after(clock, SETTLE).passed() => {}
            }
        }
        if !self.home.state.exists() {
            return Some(Kept::HomeGone);
        }
        match self.make() {
            Ok(listener) => {
                tracing::warn!(socket = %self.home.socket().display(), "the socket was removed and has been recreated");
                Some(Kept::Again(listener))
            }
            Err(error) => {
                tracing::error!(%error, "the socket was removed and cannot be recreated; restart the daemon");
                None
            }
        }
    }

    fn watch(&self) -> io::Result<Receiver> {
        let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let all_gone = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        match inotify::add_watch(&watched, &self.home.runtime, gone | all_gone) {
            Ok(_) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        // It isn't a pipe, but is read like one.
        Receiver::from_owned_fd_unchecked(watched)
    }

    fn make(&self) -> Result<UnixListener, Box<dyn std::error::Error + Send + Sync>> {
        self.home.prepare()?;
        std::fs::create_dir_all(self.home.scratch())?;
        // A lock on a removed file no longer excludes other daemons.
        let ownership = match self.home.daemon_lock().exists() {
            true => None,
            false => Some(Ownership::take(&self.home, self.boot_id)?),
        };
        let (listener, socket) = bind_unix(&self.home)?;
        let mut made = self.remade.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.push((socket, ownership));
        Ok(listener)
    }
}

async fn something_went(watched: &Receiver) -> io::Result<()> {
    loop {
        watched.readable().await?;
        match watched.try_read(&mut [0; EVENT_BYTES]) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
