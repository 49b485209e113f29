//! The daemon's side of a start in the background: leave the terminal, and tell the parent how it went.

use std::fs::{File, OpenOptions};
use std::io;

use rustix::fs::Mode;
use rustix::io::fcntl_dupfd_cloexec;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::output;

/// A line that a daemon in the background writes to standard output. The last one says how its start went.
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
    /// It cannot, and ends.
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

    /// Reads a line. `None` when it is not an announcement, or not all of one.
    pub(crate) fn parse(line: &str) -> Option<Announcement> {
        serde_json::from_str(line.strip_suffix('\n')?).ok()
    }

    /// Tells the parent what is being done, and keeps the pipe for what comes next.
    pub(crate) fn tell(&self) {
        // A parent that was killed in the meantime does not matter.
        drop(output::write(io::stdout(), &output::json_line(self)));
    }

    /// Lets go of the pipe to the parent, and tells it: whoever reads from the parent's standard output must not have to
    /// wait for the daemon. Standard output is replaced first, so that it is so when the parent hears of it.
    pub(crate) fn send(&self) -> io::Result<()> {
        let pipe = fcntl_dupfd_cloexec(io::stdout(), 0)?;
        let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        // A parent that was killed in the meantime does not matter: the daemon serves whoever comes next.
        drop(output::write(File::from(pipe), &output::json_line(self)));
        Ok(())
    }
}

/// Leaves the session of whoever started this process, so that neither their terminal nor their Ctrl-C reaches it,
/// and makes every file private that it will create.
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
