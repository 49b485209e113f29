//! Unreadable heads: lists them, says why they can't be read, and drops them.
//!
//! Readers skip such a head and continue; see [`Log::readable`]. It stays in the log until the user drops it.

use eventlog::{CommitError, Head, Log, LogError, Quarantined, StoredHead, StreamId, Version};
use thiserror::Error;

/// Why a head can't be read; `None` if it can be.
pub(crate) fn unreadable(stream: &StreamId, head: &Head) -> Option<String> {
    let readers = [
        plans::unreadable_head,
        jobs::unreadable_head,
        sessions::unreadable_head,
        process::unreadable_head,
        machines::unreadable_head,
        super::boots::unreadable_head,
    ];
    let problem = readers.iter().find_map(|reader| reader(stream, head))?;
    Some(problem.to_string())
}

/// A head that can't be read, with its stored content.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) stored: StoredHead,
    pub(crate) reason: String,
}

/// The heads that were found unreadable since the daemon started and still are. *Cancel safety*: it only reads.
pub(crate) async fn list(log: &Log) -> Result<Vec<(Quarantined, Option<StoredHead>)>, LogError> {
    let mut list = Vec::new();
    for quarantined in log.quarantined() {
        match look(log, &quarantined.stream).await {
            Ok(found) => list.push((quarantined, Some(found.stored))),
            Err(QuarantineError::NotQuarantined(stream)) => log.end_quarantine(&stream),
            // Even the database can't read it.
            Err(QuarantineError::Log(LogError::Corrupt(_))) => list.push((quarantined, None)),
            Err(QuarantineError::Log(error) | QuarantineError::Commit(CommitError::Log(error))) => {
                return Err(error);
            }
            Err(QuarantineError::Commit(_)) => list.push((quarantined, None)),
        }
    }
    Ok(list)
}

/// A head that can't be read. *Cancel safety*: it only reads.
pub(crate) async fn look(log: &Log, stream: &str) -> Result<Unreadable, QuarantineError> {
    let missing = || QuarantineError::NotQuarantined(stream.to_owned());
    let name = StreamId::new(stream).map_err(|_| missing())?;
    let stored = log.head(&name).await?.ok_or_else(missing)?;
    let reason = unreadable(&stored.stream, &stored.head).ok_or_else(missing)?;
    Ok(Unreadable { stored, reason })
}

/// Removes an unreadable head and its events, if it is still at the version that the caller saw. *Cancel safety*: if
/// dropped, the head may or may not be removed.
pub(crate) async fn drop_stream(log: &Log, stream: &str, seen: u64) -> Result<(), QuarantineError> {
    let found = look(log, stream).await?;
    log.remove(vec![(found.stored.stream, Version::from_u64(seen))])
        .await?;
    log.end_quarantine(stream);
    tracing::warn!(stream, "a head that could not be read was dropped by hand");
    Ok(())
}

/// Why a head was neither shown nor dropped.
#[derive(Debug, Error)]
pub(crate) enum QuarantineError {
    /// It doesn't exist, or it can be read.
    #[error("`{0}` is not quarantined")]
    NotQuarantined(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}
