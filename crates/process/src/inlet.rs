//! The standard input of a command, for somebody who has to know how much of it was read.
//!
//! A pipe does not tell. So this one is made to hold a single page: it is free again only when that page was read, and what
//! is left in it at the end was not.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Sender;

/// All that such a pipe holds.
pub const INLET_BYTES: usize = 4096;

/// The standard input of a command. Dropping it closes it.
#[derive(Debug)]
pub struct Inlet {
    pipe: AsyncFd<OwnedFd>,
    written: u64,
}

/// Whether anybody has the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InletReader {
    /// Somebody, who has read it all so far.
    There,
    /// Nobody any more.
    Gone,
}

impl Inlet {
    /// Makes one of the standard input of a child, to which nothing was written yet.
    ///
    /// # Errors
    /// If the system does not let the pipe be made smaller or waited for.
    pub fn new(stdin: Sender) -> io::Result<Self> {
        let pipe = stdin.into_nonblocking_fd()?;
        rustix::pipe::fcntl_setpipe_size(&pipe, INLET_BYTES)?;
        Ok(Self {
            pipe: registered(pipe)?,
            written: 0,
        })
    }

    /// Writes a piece, of at most [`INLET_BYTES`], and waits until all of it was read.
    ///
    /// *Cancel safety*: dropped half-way, the piece may have been written; [`Inlet::read_bytes`] says how much was read.
    ///
    /// # Errors
    /// If the pipe fails. That nobody reads any more is no error.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<InletReader> {
        assert!(piece.len() <= INLET_BYTES, "a piece fits into the pipe");
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
            // A page that was read frees the pipe, which wakes this; so does the last reader when it goes.
            self.pipe.writable().await?.clear_ready();
        }
        Ok(InletReader::There)
    }

    /// How much was read so far.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        // Of a pipe that cannot be asked any more, all was.
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
