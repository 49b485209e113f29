//! The daemon's side of a background start: detach from the terminal and report the outcome to the parent.

use std::fs::{File, OpenOptions};
use std::io;

use rustix::fs::Mode;
use rustix::io::fcntl_dupfd_cloexec;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::output;

/// A line that a background daemon writes to standard output. The last one reports how its start went.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Announcement {
    Starting {
        doing: String,
    },
    Serving {
        pid: u32,
        boot_id: String,
        address: String,
    },
    /// The daemon could not start, and exits.
    Failed {
        code: String,
        message: String,
        advice: Option<String>,
    },
}

impl Announcement {
    pub(crate) fn of_failure(failure: &Failure) -> Announcement {
        Announcement::Failed {
            code: failure.code.clone(),
            message: failure.message.clone(),
            advice: failure.advice.clone(),
        }
    }

    /// Parses a line. Returns `None` if it is not a complete announcement.
    pub(crate) fn parse(line: &str) -> Option<Announcement> {
        serde_json::from_str(line.strip_suffix('\n')?).ok()
    }

    /// Reports progress to the parent, and keeps the pipe open for the next announcement.
    pub(crate) fn tell(&self) {
        // It doesn't matter if the parent was killed in the meantime.
        drop(output::write(io::stdout(), &output::json_line(self)));
    }

    /// Reports to the parent and closes the pipe: a reader of the parent's standard output must not have to wait for
    /// the daemon. Standard output is replaced first, so the pipe is already closed when the parent reads the report.
    pub(crate) fn send(&self) -> io::Result<()> {
        let pipe = fcntl_dupfd_cloexec(io::stdout(), 0)?;
        let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        // It doesn't matter if the parent was killed in the meantime: the daemon serves other clients.
        drop(output::write(File::from(pipe), &output::json_line(self)));
        Ok(())
    }
}

/// Leaves the session of the process that started this one, so that neither its terminal nor its Ctrl-C reaches us,
/// and makes every file we create private.
pub(crate) fn detach() -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    std::env::set_current_dir("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_is_an_announcement() {
        let serving = Announcement::Serving {
            pid: 7,
            boot_id: "boot_1".to_owned(),
            address: "127.0.0.1:1".to_owned(),
        };
        let line = output::json_line(&serving);
        assert_eq!(Announcement::parse(&line), Some(serving));
        for broken in ["", "\n", "{}\n", line.trim_end(), &line[1..]] {
            assert_eq!(Announcement::parse(broken), None, "{broken:?}");
        }
    }
}
