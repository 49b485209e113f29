//! Waits for the end of a process through a descriptor of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A process whose end can be awaited, ours or not.
#[derive(Debug)]
pub(crate) struct WatchedProcess {
    pidfd: AsyncFd<OwnedFd>,
}

impl WatchedProcess {
    #[expect(
        unsafe_code,
        reason = "the runtime wants to be told that the descriptor stays open while it is watched"
    )]
    pub(crate) fn new(pidfd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is one open descriptor, always the same, until it is dropped; the `AsyncFd` owns
        // it from here on and only lends it out.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
        Ok(Self { pidfd })
    }

    /// Waits until the process has ended, reaped or not.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn ended(&self) {
        // The readiness isn't cleared: a process that has ended stays that way. An error means that the runtime
        // is shutting down.
        drop(self.pidfd.readable().await);
    }
}

impl AsFd for WatchedProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
