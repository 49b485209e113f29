//! A backup of the readable rest of a damaged log.

use std::{fs, io, path::Path, sync::Arc};

use kernel::SystemClock;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::{
    error::{BackupError, LogError, OpenError},
    hub::Hub,
    quarantine::Quarantine,
    record::{QUEUE_RECORDS, Record, RestoreError},
    repair::Repairer,
    sqlite::{Sqlite, SqliteOptions},
    store::Store,
};

/// The name of the copy until it is complete.
const NAME: &str = "log.sqlite3";

/// Copies everything readable into a new log and returns what was left out. It never replaces an existing file.
pub(crate) async fn backup(store: &dyn Store, path: &Path) -> Result<Vec<String>, BackupError> {
    let target = path.to_owned();
    let (unfinished, copy) = run_blocking(move || make(&target)).await?;
    let left_out = fill(store, &copy).await?;
    let target = path.to_owned();
    run_blocking(move || {
        // Closing the copy writes it out.
        drop(copy);
        name(&unfinished, &target)
    })
    .await?;
    Ok(left_out)
}

/// Creates an empty log next to the target. The directory is removed on every path.
fn make(path: &Path) -> Result<(TempDir, Sqlite), BackupError> {
    let unfinished = tempfile::Builder::new()
        .prefix(".backup-")
        .tempdir_in(directory_of(path))
        .map_err(|source| failed(path, source))?;
    let options = SqliteOptions {
        path: unfinished.path().join(NAME),
    };
    let around = (Hub::default(), Quarantine::default());
    let copy = Sqlite::open(&options, SystemClock::shared(), around).map_err(|error| match error {
        OpenError::File { source, .. } => BackupError::Log(source),
        error => failed(path, io::Error::other(error)),
    })?;
    Ok((unfinished, copy))
}

/// Moves the copy to its final name.
fn name(unfinished: &TempDir, path: &Path) -> Result<(), BackupError> {
    fs::hard_link(unfinished.path().join(NAME), path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
        _ => failed(path, error),
    })?;
    fs::File::open(directory_of(path))
        .and_then(|directory| directory.sync_all())
        .map_err(|source| failed(path, source))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn failed(path: &Path, source: io::Error) -> BackupError {
    BackupError::File {
        path: path.to_owned(),
        source,
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|error| LogError::Engine(Arc::new(error)))?
}

/// Fills an empty log with the readable rest of another one.
async fn fill(store: &dyn Store, copy: &Sqlite) -> Result<Vec<String>, LogError> {
    let (sender, received) = mpsc::channel(QUEUE_RECORDS);
    let (repaired, receiver) = mpsc::channel(QUEUE_RECORDS);
    let mending = tokio::task::spawn_blocking(move || repair(received, &repaired));
    let (dumped, restored) = tokio::join!(store.dump(sender), copy.restore(receiver));
    let left_out = mending
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))?;
    dumped?;
    match restored {
        Ok(()) => Ok(left_out),
        Err(RestoreError::Log(error)) => Err(error),
        Err(error) => Err(LogError::Engine(Arc::new(error))),
    }
}

fn repair(mut records: mpsc::Receiver<Record>, repaired: &mpsc::Sender<Record>) -> Vec<String> {
    let (mut repairer, mut out) = (Repairer::default(), Vec::new());
    while let Some(record) = records.blocking_recv() {
        repairer.take(record, &mut out);
        for record in out.drain(..) {
            if repaired.blocking_send(record).is_err() {
                return repairer.left_out();
            }
        }
    }
    repairer.left_out()
}
