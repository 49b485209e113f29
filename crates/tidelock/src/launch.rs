//! Launches a daemon in the background and waits until it reports that it serves.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use crate::background::Announcement;
use crate::context::Context;
use crate::error::{Exit, Failure, chain};
use crate::log_file;

/// How long a new daemon may take for one step of its start. The wait continues as long as it makes progress.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// How many lines of the log are shown when a daemon failed to start.
const LOG_TAIL_LINES: usize = 5;
const LOG_TAIL_BYTES: u64 = 16 << 10;
/// The longest announcement we read. Anything longer is not one.
const ANNOUNCEMENT_LIMIT_BYTES: u64 = 64 << 10;

/// Starts a daemon that outlives this process, and returns once it serves.
pub(crate) fn in_background(context: &Context) -> Result<(), Failure> {
    let log_path = context.home.log_file();
    let (log, log_start) = open_log(&log_path)?;
    let mut command = Command::new(std::env::current_exe().map_err(LaunchError::Spawn)?);
    command.args(["serve", "--background"]);
    if context.token_file != context.home.token_file() {
        command.arg("--token-file").arg(&context.token_file);
    }
    // The working directory must not keep a file system busy that someone wants to unmount.
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    let mut child = command.spawn().map_err(LaunchError::Spawn)?;
    let heard = match child.stdout.take() {
        Some(stdout) => listen(stdout, STEP_TIMEOUT).map_err(LaunchError::Spawn)?,
        None => Heard::Nothing,
    };
    let error = match heard {
        Heard::Announcement(Announcement::Serving { .. }) => return Ok(()),
        // This is never the last thing we hear.
        Heard::Announcement(Announcement::Starting { .. }) | Heard::Nothing => {
            let ended = end(&mut child);
            LaunchError::Died {
                ended,
                log: log_tail(&log_path, log_start),
            }
        }
        Heard::Announcement(Announcement::Failed {
            code,
            message,
            advice,
        }) => {
            end(&mut child);
            let message = format!("the daemon could not be started: {message}");
            let failure = Failure::new(Exit::Unreachable, &code, message);
            return Err(Failure { advice, ..failure });
        }
        Heard::Silence { doing } => {
            end(&mut child);
            LaunchError::Timeout {
                doing,
                limit: STEP_TIMEOUT,
                log: log_tail(&log_path, log_start),
            }
        }
    };
    let advice = format!(
        "see the log in `{}`, or run `tidelock serve` in the foreground",
        log_path.display()
    );
    Err(Failure::from(error).advise(advice))
}

#[derive(Debug)]
enum Heard {
    Announcement(Announcement),
    Nothing,
    /// It made no progress on this step for too long.
    Silence {
        doing: String,
    },
}

/// Waits for the final announcement as long as the daemon makes progress.
fn listen(stdout: impl Read + Send + 'static, limit: Duration) -> io::Result<Heard> {
    let heard = read_announcements(stdout)?;
    let mut doing = "its first step".to_owned();
    loop {
        match heard.recv_timeout(limit) {
            Ok(Heard::Announcement(Announcement::Starting { doing: next })) => doing = next,
            Ok(heard) => return Ok(heard),
            Err(RecvTimeoutError::Timeout) => return Ok(Heard::Silence { doing }),
            Err(RecvTimeoutError::Disconnected) => return Ok(Heard::Nothing),
        }
    }
}

/// Reads announcements on its own thread, because a pipe cannot be read with a deadline. An abandoned thread ends
/// with the child.
fn read_announcements(stdout: impl Read + Send + 'static) -> io::Result<Receiver<Heard>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("announcement".to_owned())
        .spawn(move || {
            let mut lines = BufReader::new(stdout.take(ANNOUNCEMENT_LIMIT_BYTES));
            loop {
                let mut line = String::new();
                let read = lines.read_line(&mut line);
                let announcement = read.ok().and_then(|_| Announcement::parse(&line));
                let is_last = !matches!(announcement, Some(Announcement::Starting { .. }));
                let heard = announcement.map_or(Heard::Nothing, Heard::Announcement);
                if sender.send(heard).is_err() || is_last {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

/// Ends a child that did not become a daemon, and returns how it ended.
fn end(child: &mut Child) -> String {
    // It may have ended by itself; then there is nothing to kill, and we report its own status.
    drop(child.kill());
    match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Opens the log for a new daemon, and returns where its part begins.
fn open_log(path: &Path) -> Result<(File, u64), LaunchError> {
    let unusable = |source| LaunchError::Log {
        path: path.to_owned(),
        source,
    };
    let log = log_file::open(path).map_err(unusable)?;
    let length = log.metadata().map_err(unusable)?.len();
    Ok((log, length))
}

/// The last lines that a daemon wrote, each on its own line.
fn log_tail(path: &Path, start: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let start = start.max(file.metadata()?.len().saturating_sub(LOG_TAIL_BYTES));
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut tail)?;
        Ok(tail)
    };
    // The log only helps to explain another error. If it can't be read, that error is still reported.
    let tail = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..]
        .iter()
        .map(|line| format!("\n  | {line}"))
        .collect()
}

#[derive(Debug, Error)]
enum LaunchError {
    #[error("the log file `{path}` cannot be opened", path = .path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("the daemon's process cannot be started")]
    Spawn(#[source] io::Error),
    #[error("the daemon ended before it was ready ({ended}){log}")]
    Died { ended: String, log: String },
    #[error("the daemon made no progress for {} s ({doing}) and was stopped{log}", .limit.as_secs())]
    Timeout {
        doing: String,
        limit: Duration,
        log: String,
    },
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        Failure::new(Exit::Unreachable, "start_failed", chain(&error)).advise("see `tidelock doctor`")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::output;

    #[test]
    fn a_daemon_is_waited_for_as_long_as_it_gets_on() {
        let step = |doing: &str| {
            output::json_line(&Announcement::Starting {
                doing: doing.to_owned(),
            })
        };
        let limit = Duration::from_millis(300);
        let (reader, mut writer) = io::pipe().unwrap();
        let telling = thread::spawn(move || {
            for _ in 0..6 {
                thread::sleep(limit / 3);
                writer.write_all(step("one").as_bytes()).unwrap();
            }
            writer.write_all(step("two").as_bytes()).unwrap();
            writer
        });
        match listen(reader, limit).unwrap() {
            Heard::Silence { doing } => assert_eq!(doing, "two"),
            other => panic!("{other:?}"),
        }
        drop(telling.join().unwrap());
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(matches!(listen(reader, limit).unwrap(), Heard::Nothing));
    }

    #[test]
    fn the_tail_of_a_log_is_its_last_lines_since_the_start() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("log");
        for (content, start, expected) in [
            ("", 0, ""),
            ("old\nnew\n", 4, "\n  | new"),
            ("1\n2\n3\n4\n5\n6\n", 0, "\n  | 2\n  | 3\n  | 4\n  | 5\n  | 6"),
            ("short\n", 1_000, ""),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(log_tail(&path, start), expected, "{content:?}");
        }
        assert_eq!(log_tail(&temporary.path().join("missing"), 0), "");
    }
}
