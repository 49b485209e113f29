//! Our end of what a command writes to, a pipe or a terminal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Receiver;

/// What a command writes to its standard output or standard error. Pipes and terminals are read in the same way.
///
/// *Cancel safety*: a read that is dropped has read nothing.
#[derive(Debug)]
pub struct Outlet {
    /// The runtime treats it as a pipe, which only needs read and poll.
    receiver: Receiver,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Pipe,
    Terminal,
}

impl Outlet {
    pub(crate) fn pipe(read_end: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            receiver: Receiver::from_owned_fd(read_end)?,
            kind: Kind::Pipe,
        })
    }

    /// The master of a pseudo-terminal, which must be non-blocking.
    pub(crate) fn terminal(master: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            receiver: Receiver::from_owned_fd_unchecked(master)?,
            kind: Kind::Terminal,
        })
    }

    /// Waits until there is something to read, or the end.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.receiver.readable().await
    }

    /// Reads what is there; zero is the end.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        end_as_nothing(self.receiver.try_read(buffer))
    }
}

/// When the last writer of a terminal closes it, the kernel returns an error, which means the end here.
fn end_as_nothing(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
        other => other,
    }
}

impl AsyncRead for Outlet {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.kind == Kind::Pipe {
            return Pin::new(&mut this.receiver).poll_read(context, buffer);
        }
        // The runtime assumes that a read that doesn't fill the buffer has emptied it, which is true of a pipe. A
        // terminal returns a few kilobytes at a time whatever it has. So it is read until it says that it is
        // empty.
        loop {
            ready!(this.receiver.poll_read_ready(context))?;
            match this.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
