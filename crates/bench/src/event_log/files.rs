//! Opening a log for a turn, and closing it before the next turn begins.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use tokio::runtime::Runtime;

pub(super) fn path_in(directory: &Path) -> PathBuf {
    directory.join("log.sqlite3")
}

pub(super) fn open(directory: &Path) -> Result<Log> {
    let options = SqliteOptions {
        path: path_in(directory),
    };
    Log::open_sqlite(&options, SystemClock::shared()).context("cannot open a log")
}

/// Closes a log and waits until all of it is on disk, so that this work does not fall into another contender's turn.
pub(super) fn close(log: Log, directory: &Path) -> Result<()> {
    drop(log);
    let mut wal = path_in(directory).into_os_string();
    wal.push("-wal");
    // The last one to close the file removes the write-ahead log.
    ensure!(!fs::exists(&wal)?, "somebody still has the log open");
    Ok(())
}

pub(super) fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    runtime.context("cannot start a runtime")
}
