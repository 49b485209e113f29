//! What can go wrong with owned processes.

use std::io;
use std::path::PathBuf;

use eventlog::{BadName, CommitError, LogError};

/// A command was not run. Nothing is left of the attempt: no process, no descriptor, no open row.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program is not there or cannot be executed.
    #[error("`{}` cannot be executed", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The directory to start in cannot be used.
    #[error("nothing can be started in `{}`", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A limit cannot be set.
    #[error("the limits of the command cannot be set")]
    Limits(#[source] io::Error),
    /// The confinement cannot be set up; most likely one of its directories is not there.
    #[error("the command cannot be confined as asked")]
    Confinement(#[source] io::Error),
    /// The daemon lacks what it needs for a child: descriptors, memory, processes.
    #[error("the daemon has no means for another child")]
    Means(#[source] io::Error),
    /// The keeper of the command ended or fell silent before the command ran.
    #[error("the keeper of the command failed before the command ran")]
    Keeper(#[source] io::Error),
    /// The ledger could not be written, so the command was not allowed to run.
    #[error("the command was not run, because it could not be entered in the ledger")]
    Ledger(#[source] CommitError),
    /// There are as many as there may be.
    #[error("{limit} processes are owned already, and there may not be more")]
    TooMany {
        /// How many.
        limit: usize,
    },
    /// It was stopped while it was being started, or everything is being stopped.
    #[error("the command was stopped before it ran")]
    Stopped,
}

/// The owned processes of a home cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum OpenProcessesError {
    /// The ledger cannot be read.
    #[error("the ledger of processes cannot be read")]
    Read(#[source] LogError),
    /// A row of the ledger cannot be written.
    #[error("the ledger of processes cannot be written")]
    Write(#[source] CommitError),
    /// The home has no usable name.
    #[error(transparent)]
    BadName(#[from] BadName),
}
