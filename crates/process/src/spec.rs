//! What to run, and how to stop it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use protocol::JobTerminal;
use serde::{Deserialize, Serialize};

use crate::view::View;

/// A command to run as an owned child.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program. A bare name is looked up in the `PATH` of `environment`.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment; nothing is inherited. One variable that marks it as ours is added.
    pub environment: BTreeMap<OsString, OsString>,
    /// The owner, for display, for example `lsp/rust-analyzer`.
    pub owner: String,
    /// Why it runs, for display.
    pub reason: String,
    /// The generation of the owner's start.
    pub generation: u64,
    /// Its resource limits.
    pub limits: Limits,
    /// Where it may write.
    pub confinement: Confinement,
    /// Where its standard error goes.
    pub stderr: StandardError,
    /// If set, its standard output and standard error are terminals of this size, one each unless `stderr` merges
    /// them, and it may use color. Otherwise they are pipes. Its standard input is always a pipe.
    pub terminal: Option<JobTerminal>,
    /// Its view of the file system; `None` for the daemon's. In a view, the program, the working directory and
    /// the directories of the confinement are looked up in the view, and the command has no capabilities, even as
    /// root.
    pub view: Option<View>,
}

/// Where the standard error of a child goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StandardError {
    /// The last of it is kept; see [`Child::stderr_tail`](crate::Child::stderr_tail).
    #[default]
    KeptAsTail,
    /// It is handed out like the standard output; see [`Child::stderr`](crate::Child::stderr). Nothing is kept.
    HandedOut,
    /// It goes to the standard output, in the order in which both were written, as on a terminal. Nothing else
    /// preserves the order of the two streams.
    WithOutput,
}

/// The resource limits of each process of a child. `None` leaves a limit as the daemon has it; no limit is ever
/// raised.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Address space.
    pub address_space_bytes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
    /// The size of a file that it writes.
    pub file_bytes: Option<u64>,
    /// The size of a core dump; zero for none.
    pub core_bytes: Option<u64>,
    /// CPU time.
    pub cpu_seconds: Option<u64>,
    /// How many processes and threads its user may have when one of its processes wants another one, including
    /// those of others. Root isn't bound by it.
    pub processes: Option<u64>,
}

/// Where a child may write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Confinement {
    /// Wherever its user may.
    #[default]
    None,
    /// Only below these directories, as far as the kernel can enforce it; see [`Enforcement`]. A few devices such
    /// as `/dev/null` and terminals can always be written.
    WriteBelow(Vec<PathBuf>),
}

/// How much of a [`Confinement`] is in force. The wire calls it confinement, because there it is the only one.
pub use protocol::Confinement as Enforcement;

/// How a child is stopped: each step has its time, and is skipped when nothing is left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StopPlan {
    /// The time for the child to end by itself; the caller has already asked it to.
    pub polite: Duration,
    /// From SIGTERM to all of its processes until SIGKILL.
    pub term: Duration,
    /// From SIGKILL until whatever is still there is reported and left.
    pub kill: Duration,
}

impl StopPlan {
    /// SIGTERM now, SIGKILL two seconds later: for a child that nobody has asked to end.
    pub const PROMPT: Self = Self {
        polite: Duration::ZERO,
        term: Duration::from_secs(2),
        kill: Duration::from_secs(5),
    };
    /// SIGKILL now.
    pub const NOW: Self = Self {
        polite: Duration::ZERO,
        term: Duration::ZERO,
        kill: Duration::from_secs(5),
    };

    /// How long it may take in total.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.polite.saturating_add(self.term).saturating_add(self.kill)
    }
}

/// The program that is the parent of each child; see [`keep_if_asked`](crate::keep_if_asked).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeeperProgram {
    /// The running program, even if its file has been replaced since.
    ThisProgram,
    /// Another one, for programs that aren't their own keeper, such as tests.
    At(PathBuf),
}
