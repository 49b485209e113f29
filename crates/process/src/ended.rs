//! How a child ended.

use protocol::JobKilled;
use serde::{Deserialize, Serialize};

/// How many processes are named where some had to be killed or could not be. A tree can have thousands; the rest is
/// left out.
pub(crate) const NAMED_PROCESSES: usize = 32;

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody saw it: its keeper was killed, or it could not be killed.
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
    /// What had to be killed, because it did not end when it was told to.
    pub killed: Killed,
    /// The pids of what could not even be killed, and was left; at most 32 of them. Nearly always empty.
    pub left: Vec<u32>,
    /// What became of the keeper.
    pub keeper: KeeperEnd,
}

/// What became of a keeper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeeperEnd {
    /// It saw the end of the tree and said so.
    Reported,
    /// It died before that, or did not answer; the daemon has killed what was left.
    Died,
}

/// Processes that had to be killed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Killed {
    /// How many.
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
