//! The standard input of a command, for a writer that has to know how much of it was read.
//!
//! A pipe doesn't tell. So this one is shrunk to a single page: it is writable again only when that page was
//! read, and what is left in it at the end wasn't.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;

/// The capacity of such a pipe.
pub const INLET_BYTES: usize = 4096;

/// The standard input of a command. Dropping it closes it.
#[derive(Debug)]
pub struct Inlet {
    pipe: AsyncFd<OwnedFd>,
    written: u64,
}

/// Whether the other end is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InletReader {
    /// It is, and everything so far has been read.
    There,
    /// It isn't anymore.
    Gone,
}

impl Inlet {
    /// Wraps the standard input of a child, to which nothing was written yet.
    ///
    /// # Errors
    /// If the system doesn't allow the pipe to be shrunk or polled.
    pub fn new(stdin: Sender) -> io::Result<Self> {
        let pipe = stdin.into_nonblocking_fd()?;
        rustix::pipe::fcntl_setpipe_size(&pipe, INLET_BYTES)?;
        Ok(Self {
            pipe: registered(pipe)?,
            written: 0,
        })
    }

    /// Writes a piece of at most [`INLET_BYTES`], and waits until all of it was read.
    ///
    /// *Cancel safety*: if the future is dropped, the piece may have been written; [`Inlet::read_bytes`] tells
    /// how much was read.
    ///
    /// # Errors
    /// If the pipe fails. A closed reader isn't an error.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<InletReader> {
        assert!(piece.len() <= INLET_BYTES, "a piece must fit into the pipe");
        // The pipe is empty, so it takes all of it.
        match rustix::io::write(self.pipe.get_ref(), piece) {
            Ok(count) => self.written += count as u64,
            Err(rustix::io::Errno::PIPE) => return Ok(InletReader::Gone),
            Err(error) => return Err(error.into()),
        }
        while rustix::io::ioctl_fionread(self.pipe.get_ref())? > 0 {
            if is_left(self.pipe.get_ref())? {
                return Ok(InletReader::Gone);
            }
            // Reading the page frees the pipe, which wakes this; so does the last reader when it closes.
            self.pipe.writable().await?.clear_ready();
        }
        Ok(InletReader::There)
    }

    /// How many bytes were read so far.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        // If the pipe can't be queried anymore, everything was read.
        let unread = rustix::io::ioctl_fionread(self.pipe.get_ref()).unwrap_or(0);
        self.written.saturating_sub(unread)
    }
}

#[expect(
    unsafe_code,
    reason = "the runtime has to be told of the descriptor of the pipe"
)]
fn registered(pipe: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is one open descriptor, always the same, until it is dropped; and the `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register_with_interest(pipe, Interest::WRITABLE) }?)
}

fn is_left(pipe: &OwnedFd) -> io::Result<bool> {
    let mut looked = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut looked, Some(&Timespec::default()))?;
    Ok(looked[0].revents().contains(PollFlags::ERR))
}
