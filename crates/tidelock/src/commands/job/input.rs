//! A command's input: the standard input of this process, forwarded while the command runs.
//!
//! The command should read as if it had been started right here. So input that it does not read stays available to
//! the next reader: a script that runs `tidelock exec` in a loop keeps its own input. The daemon reports how much was
//! read. A file is read without moving its offset, which is moved at the end; a pipe is copied with `tee(2)`, and
//! what was read is then removed from it. Sockets and devices allow neither, so what was sent from them is consumed.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError}; // tidy: a client has two plain threads
use std::thread;
use std::time::Duration;

use protocol::{INPUT_DATA, INPUT_END, INPUT_HELLO, INPUT_OVER, INPUT_PIECE_BYTES, INPUT_PROTOCOL};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, SeekFrom, fstat, makedev, seek};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};

use super::path;
use crate::client::Client;
use crate::error::{Exit, Failure, chain};

/// How long the daemon may take to report how much was read, once the job has ended.
const LAST_WORD: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::commands) enum Source {
    /// Read from an offset, which is moved once it is known how much was read.
    File { file: File, start: u64 },
    /// What was read is removed from it.
    Pipe(File),
    /// Reading consumes it.
    Other(File),
}

impl Source {
    /// The standard input of this process; `None` if it is a terminal or empty.
    pub(in crate::commands) fn stdin() -> Option<Source> {
        if io::stdin().is_terminal() {
            return None;
        }
        Source::of(io::stdin().as_fd().try_clone_to_owned().ok()?)
    }

    fn of(input: OwnedFd) -> Option<Source> {
        // If standard input was closed, it is `/dev/null` by the time the program starts.
        let stat = fstat(&input).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice if stat.st_rdev == makedev(1, 3) => None,
            FileType::Fifo => Some(Source::Pipe(input.into())),
            FileType::RegularFile => {
                let start = seek(&input, SeekFrom::Current(0)).ok()?;
                let file = input.into();
                Some(Source::File { file, start })
            }
            _ => Some(Source::Other(input.into())),
        }
    }
}

#[derive(Debug, Default)]
struct Progress {
    taken: u64,
    removed: u64,
    /// Whether it will read no more.
    is_over: bool,
}

#[derive(Debug, Default)]
struct WatchedProgress {
    /// How far the input has been read; locked only briefly.
    progress: Mutex<Progress>,
    moved: Condvar, // tidy: the two threads of a client wait for each other
}

impl WatchedProgress {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.moved.notify_all();
    }

    /// Waits until the condition holds, or until the limit; forever without one.
    fn wait(&self, limit: Option<Duration>, is_so: impl Fn(&Progress) -> bool) {
        let progress = self.progress();
        let not_yet = |progress: &mut Progress| !is_so(progress);
        match limit {
            Some(limit) => drop(self.moved.wait_timeout_while(progress, limit, not_yet)),
            None => drop(self.moved.wait_while(progress, not_yet)),
        }
    }
}

/// An input that is being sent. The sending thread ends with this process.
#[derive(Debug)]
pub(in crate::commands) struct Feeding {
    shared: Arc<WatchedProgress>,
    place: SourceRest,
}

/// What remains to be done with the source at the end.
#[derive(Debug)]
enum SourceRest {
    /// Move it past what was read.
    File(File, u64),
    /// Remove what was read.
    Pipe,
    Other,
}

impl Feeding {
    pub(in crate::commands) fn start(client: &Client, id: &str, source: Source) -> Result<Feeding, Failure> {
        let connection = client
            .upgrade(&path(id, "/input"), INPUT_PROTOCOL, &[])
            .map_err(|error| {
                let message = format!("can't send input to {id}: {}", chain(&error));
                Failure::new(Exit::Failed, "input_not_sent", message).advise(format!(
                    "the job continues without it; see `tidelock job show {id}`"
                ))
            })?;
        let no_means = |error: io::Error| Failure::new(Exit::Failed, "no_resources", error.to_string());
        let shared = Arc::new(WatchedProgress::default());
        let place = match &source {
            Source::File { file, start } => SourceRest::File(file.try_clone().map_err(no_means)?, *start),
            Source::Pipe(_) => SourceRest::Pipe,
            Source::Other(_) => SourceRest::Other,
        };
        let (told, hearing) = (Arc::clone(&shared), connection.try_clone().map_err(no_means)?);
        thread::spawn(move || hear(hearing, &told));
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            // Without an end marker, the daemon treats the input as cut off. If the daemon itself stopped
            // reading,
            // that doesn't matter.
            if send(source, &connection, &own).is_err() {
                drop(connection.shutdown(Shutdown::Write));
            }
        });
        Ok(Feeding { shared, place })
    }

    /// The job has ended: leaves what it did not read to others.
    pub(in crate::commands) fn finish(self) {
        let is_pipe = matches!(self.place, SourceRest::Pipe);
        self.shared.wait(Some(LAST_WORD), |progress| {
            progress.is_over && (!is_pipe || progress.removed >= progress.taken)
        });
        if let SourceRest::File(file, start) = &self.place {
            let taken = self.shared.progress().taken;
            // If a file can't seek, no one else continues reading at its offset.
            let _ = seek(file, SeekFrom::Start(start + taken));
        }
    }
}

fn hear(mut connection: UnixStream, shared: &WatchedProgress) {
    let mut frame = [0; 9];
    while connection.read_exact(&mut frame).is_ok() {
        let mut number = [0; 8];
        number.copy_from_slice(&frame[1..]);
        shared.change(|progress| {
            progress.taken = u64::from_be_bytes(number);
            progress.is_over = frame[0] == INPUT_OVER;
        });
    }
    shared.change(|progress| progress.is_over = true);
}

fn send(source: Source, mut connection: &UnixStream, shared: &WatchedProgress) -> io::Result<()> {
    let mut piece = vec![0; INPUT_PIECE_BYTES];
    connection.write_all(&[INPUT_HELLO, 0, 0, 0, 0])?;
    match source {
        Source::File { file, start } => {
            let mut at = start;
            loop {
                let count = file.read_at(&mut piece, at)?;
                if count == 0 {
                    break;
                }
                send_piece(connection, &piece[..count])?;
                at += count as u64;
            }
        }
        Source::Other(mut file) => loop {
            until_readable(&file)?;
            let count = file.read(&mut piece)?;
            if count == 0 {
                break;
            }
            send_piece(connection, &piece[..count])?;
        },
        Source::Pipe(pipe) => copy_pipe(pipe, connection, shared, &mut piece)?,
    }
    connection.write_all(&[INPUT_END, 0, 0, 0, 0])
}

/// Sends a pipe chunk by chunk, and removes from it what was read. Each chunk waits until the last one was read.
fn copy_pipe(
    mut pipe: File,
    connection: &UnixStream,
    shared: &WatchedProgress,
    piece: &mut [u8],
) -> io::Result<()> {
    let (copy, copied) = pipe_with(PipeFlags::CLOEXEC)?;
    let (mut copy, mut sent) = (File::from(copy), 0);
    loop {
        until_readable(&pipe)?;
        let count = tee(&pipe, &copied, piece.len(), SpliceFlags::empty())?;
        if count == 0 {
            return Ok(());
        }
        copy.read_exact(&mut piece[..count])?;
        send_piece(connection, &piece[..count])?;
        sent += count as u64;
        loop {
            let removed = shared.progress().removed;
            shared.wait(None, |progress| progress.taken > removed || progress.is_over);
            let (taken, is_over) = {
                let progress = shared.progress();
                (progress.taken.min(sent), progress.is_over)
            };
            let mut left = taken - removed;
            while left > 0 {
                let some = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                pipe.read_exact(&mut piece[..some])?;
                left -= some as u64;
            }
            shared.change(|progress| progress.removed = taken);
            if is_over {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if taken == sent {
                break;
            }
        }
    }
}

/// Waits for data or the end. The process that started us may have made the input non-blocking.
fn until_readable(input: &File) -> io::Result<()> {
    let mut looked = [PollFd::new(input, PollFlags::IN)];
    poll(&mut looked, None)?;
    Ok(())
}

fn send_piece(mut connection: &UnixStream, piece: &[u8]) -> io::Result<()> {
    let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
    connection.write_all(&[INPUT_DATA])?;
    connection.write_all(&length.to_be_bytes())?;
    connection.write_all(piece)
}
