//! How a child ended.

use protocol::JobKilled;
use serde::{Deserialize, Serialize};

/// How many processes are listed if some had to be killed or couldn't be. A tree can have thousands; the rest is
/// left out.
pub(crate) const NAMED_PROCESSES: usize = 32;

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// Unknown: its keeper was killed, or it couldn't be killed.
    Unknown,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
            Self::Unknown => formatter.write_str("an end that nobody saw"),
        }
    }
}

/// A child has ended, and so has everything that it had started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ended {
    /// How the command itself ended.
    pub exit: Exit,
    /// The processes that had to be killed, because they didn't end when they were told to.
    pub killed: Killed,
    /// The pids of processes that couldn't even be killed; at most 32 of them. Nearly always empty.
    pub left: Vec<u32>,
    /// How the keeper ended.
    pub keeper: KeeperEnd,
}

/// How a keeper ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeeperEnd {
    /// It saw the end of the tree and reported it.
    Reported,
    /// It died before that, or didn't respond; the daemon has killed the rest.
    Died,
}

/// Processes that had to be killed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Killed {
    /// The number of processes.
    pub count: u64,
    /// Some of them.
    pub some: Vec<JobKilled>,
}

impl Killed {
    pub(crate) fn add(&mut self, pid: u32, name: &str) {
        self.count += 1;
        if self.some.len() < NAMED_PROCESSES {
            let name = name.to_owned();
            self.some.push(JobKilled { pid, name });
        }
    }
}
