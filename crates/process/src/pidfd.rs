//! The wait for the end of a process, by a descriptor of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A process whose end can be waited for, ours or not.
#[derive(Debug)]
pub(crate) struct Watched {
    pidfd: AsyncFd<OwnedFd>,
}

impl Watched {
    #[expect(
        unsafe_code,
        reason = "the runtime wants to be told that the descriptor stays open while it is watched"
    )]
    pub(crate) fn new(pidfd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is one open descriptor, always the same, until it is dropped; and the `AsyncFd` owns it
        // from here on and hands out nothing but a borrow.
        let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
        Ok(Self { pidfd })
    }

    /// Waits until the process has ended, reaped or not.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn ended(&self) {
        // The readiness is kept: a process that has ended stays so. An error means that the runtime is going away.
        drop(self.pidfd.readable().await);
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
