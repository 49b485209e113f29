//! A backup of what is left of a log that is damaged in places.

use std::{fs, io, path::Path, sync::Arc};

use kernel::SystemClock;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::{
    error::{BackupError, LogError, OpenError},
    hub::Hub,
    mend::Mender,
    quarantine::Quarantine,
    record::{QUEUE_RECORDS, Record, RestoreError},
    sqlite::{Sqlite, SqliteOptions},
    store::Store,
};

/// The name of the copy until it has its own.
const NAME: &str = "log.sqlite3";

/// Copies everything that can be read into a new log, and says what was left out. It never takes the place of a file that
/// is there.
pub(crate) async fn backup(store: &dyn Store, path: &Path) -> Result<Vec<String>, BackupError> {
    let target = path.to_owned();
    let (unfinished, copy) = elsewhere(move || make(&target)).await?;
    let left_out = fill(store, &copy).await?;
    let target = path.to_owned();
    elsewhere(move || {
        // Closing it writes it out.
        drop(copy);
        name(&unfinished, &target)
    })
    .await?;
    Ok(left_out)
}

/// Makes an empty log beside the place of the copy. The directory goes on every way out.
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

/// Gives the copy its name.
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

async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|error| LogError::Engine(Arc::new(error)))?
}

/// Fills an empty log with what can be read of another one.
async fn fill(store: &dyn Store, copy: &Sqlite) -> Result<Vec<String>, LogError> {
    let (sender, received) = mpsc::channel(QUEUE_RECORDS);
    let (mended, receiver) = mpsc::channel(QUEUE_RECORDS);
    let mending = tokio::task::spawn_blocking(move || mend(received, &mended));
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

fn mend(mut records: mpsc::Receiver<Record>, mended: &mpsc::Sender<Record>) -> Vec<String> {
    let (mut mender, mut out) = (Mender::default(), Vec::new());
    while let Some(record) = records.blocking_recv() {
        mender.take(record, &mut out);
        for record in out.drain(..) {
            if mended.blocking_send(record).is_err() {
                return mender.left_out();
            }
        }
    }
    mender.left_out()
}
