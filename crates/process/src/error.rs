//! Errors of owned processes.

use std::io;
use std::path::PathBuf;

use eventlog::{BadName, CommitError, LogError};

/// A command wasn't run. Nothing is left of the attempt: no process, no descriptor, no open row.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program doesn't exist or can't be executed.
    #[error("`{}` cannot be executed", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The working directory can't be used.
    #[error("nothing can be started in `{}`", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A limit can't be set.
    #[error("the limits of the command cannot be set")]
    Limits(#[source] io::Error),
    /// The confinement can't be set up; most likely one of its directories doesn't exist.
    #[error("the command cannot be confined as asked")]
    Confinement(#[source] io::Error),
    /// The daemon lacks descriptors, memory or processes for a child.
    #[error("the daemon has no means for another child")]
    Means(#[source] io::Error),
    /// The keeper of the command ended or went silent before the command ran.
    #[error("the keeper of the command failed before the command ran")]
    Keeper(#[source] io::Error),
    /// The ledger couldn't be written, so the command wasn't allowed to run.
    #[error("the command was not run, because it could not be entered in the ledger")]
    Ledger(#[source] CommitError),
    /// The limit is reached.
    #[error("{limit} processes are owned already, and there may not be more")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// It was stopped while it was starting, or everything is being stopped.
    #[error("the command was stopped before it ran")]
    Stopped,
}

/// The owned processes of a home couldn't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenProcessesError {
    /// The ledger can't be read.
    #[error("the ledger of processes cannot be read")]
    Read(#[source] LogError),
    /// A row of the ledger can't be written.
    #[error("the ledger of processes cannot be written")]
    Write(#[source] CommitError),
    /// The home has no valid name.
    #[error(transparent)]
    BadName(#[from] BadName),
}
