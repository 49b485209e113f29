//! The three pipes between the daemon and a command. All ends are closed on exec; the command gets copies of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::{Receiver, Sender};

/// How much is read at once from a pipe that is drained. Each child keeps a buffer of this size.
const DRAIN_BYTES: usize = 16 * 1024;
/// How often the last of a pipe is read without waiting. A pipe can be made to hold 1 MiB, which this covers.
const LAST_READS: usize = 64;

/// Our ends, and those of the command.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
    pub(crate) theirs: [OwnedFd; 3],
}

impl Pipes {
    pub(crate) fn make() -> io::Result<Self> {
        let (their_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            stdin: Sender::from_owned_fd(stdin)?,
            stdout: Receiver::from_owned_fd(stdout)?,
            stderr: Receiver::from_owned_fd(stderr)?,
            theirs: [their_stdin, their_stdout, their_stderr],
        })
    }
}

/// A pipe that is read so that its writer is never held up.
#[derive(Debug)]
pub(crate) struct Drain {
    /// `None` at its end, and while there is nothing to be drained.
    pub(crate) pipe: Option<Receiver>,
    buffer: Vec<u8>,
}

impl Drain {
    pub(crate) fn new(pipe: Option<Receiver>) -> Self {
        Self {
            pipe,
            buffer: Vec::new(),
        }
    }

    /// The next piece. At the end of the pipe it waits for ever.
    ///
    /// *Cancel safety*: may be dropped at any time; nothing is read before it returns.
    pub(crate) async fn next(&mut self) -> &[u8] {
        self.make_room();
        let count = loop {
            let Some(pipe) = &self.pipe else {
                std::future::pending().await
            };
            let read = match pipe.readable().await {
                Ok(()) => pipe.try_read(&mut self.buffer),
                Err(error) => Err(error),
            };
            match read {
                Ok(count) if count > 0 => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => self.pipe = None,
            }
        };
        &self.buffer[..count]
    }

    /// What is in the pipe now, without waiting. It asks the kernel and not the runtime, which may not have heard of
    /// the last bytes yet.
    pub(crate) fn rest(&mut self, mut take: impl FnMut(&[u8])) {
        self.make_room();
        let Some(pipe) = self.pipe.take() else {
            return;
        };
        for _ in 0..LAST_READS {
            match rustix::io::read(pipe.as_fd(), &mut self.buffer) {
                Ok(count) if count > 0 => take(&self.buffer[..count]),
                _ => return,
            }
        }
    }

    /// The buffer is made when there is something to be read.
    fn make_room(&mut self) {
        if self.pipe.is_some() {
            self.buffer.resize(DRAIN_BYTES, 0);
        }
    }
}
