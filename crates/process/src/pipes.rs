//! The three streams between the daemon and a command, pipes or terminals. All ends are close-on-exec; the
//! command gets its own copies.

use std::io;
use std::os::fd::OwnedFd;

use protocol::JobTerminal;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Sender;

use crate::outlet::Outlet;
use crate::spec::StandardError;
use crate::terminal;

/// How much is read at once from a pipe that is drained. Each child keeps a buffer of this size.
const DRAIN_BYTES: usize = 16 * 1024;
/// How many times the rest of a pipe is read without waiting. This covers 1 MiB, the most that a pipe can hold.
const LAST_READS: usize = 64;

/// Our ends, and those of the command.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Sender,
    pub(crate) stdout: Outlet,
    /// `None` if it goes to the standard output.
    pub(crate) stderr: Option<Outlet>,
    pub(crate) theirs: [OwnedFd; 3],
}

impl Pipes {
    pub(crate) fn make(terminal: Option<JobTerminal>, stderr_goes: StandardError) -> io::Result<Self> {
        let (their_stdin, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let outlet = || match terminal {
            None => pipe(),
            // Each stream has its own terminal, so that we can tell which of the two was written to.
            Some(size) => terminal::open(size),
        };
        let (stdout, their_stdout) = outlet()?;
        let (stderr, their_stderr) = match stderr_goes {
            StandardError::WithOutput => (None, their_stdout.try_clone()?),
            StandardError::KeptAsTail | StandardError::HandedOut => {
                let (stderr, their_stderr) = outlet()?;
                (Some(stderr), their_stderr)
            }
        };
        Ok(Self {
            stdin: Sender::from_owned_fd(stdin)?,
            stdout,
            stderr,
            theirs: [their_stdin, their_stdout, their_stderr],
        })
    }
}

fn pipe() -> io::Result<(Outlet, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Outlet::pipe(ours)?, theirs))
}

/// A pipe that is read so that its writer never blocks.
#[derive(Debug)]
pub(crate) struct Drain {
    /// `None` at its end, and while there is nothing to drain.
    pub(crate) pipe: Option<Outlet>,
    buffer: Vec<u8>,
}

impl Drain {
    pub(crate) fn new(pipe: Option<Outlet>) -> Self {
        Self {
            pipe,
            buffer: Vec::new(),
        }
    }

    /// The next piece. At the end of the pipe it waits forever.
    ///
    /// *Cancel safety*: the future may be dropped at any time; nothing is read before it returns.
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

    /// Reads what is in the pipe now, without waiting. It asks the kernel and not the runtime, which may not know
    /// about the last bytes yet.
    pub(crate) fn rest(&mut self, mut take: impl FnMut(&[u8])) {
        self.make_room();
        let Some(pipe) = self.pipe.take() else {
            return;
        };
        for _ in 0..LAST_READS {
            match rustix::io::read(&pipe, &mut self.buffer) {
                Ok(count) if count > 0 => take(&self.buffer[..count]),
                _ => return,
            }
        }
    }

    /// The buffer is allocated when there is something to read.
    fn make_room(&mut self) {
        if self.pipe.is_some() {
            self.buffer.resize(DRAIN_BYTES, 0);
        }
    }
}
