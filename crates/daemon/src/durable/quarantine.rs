//! Heads that cannot be read: which, why, and how to be rid of one.
//!
//! Readers leave such a head out and go on, see [`Log::readable`]. It stays in the log until somebody drops it by hand.

use eventlog::{CommitError, Head, Log, LogError, Quarantined, StoredHead, StreamId, Version};
use thiserror::Error;

/// Why a head cannot be read; nothing if it can be.
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

/// A head that cannot be read, with what is stored.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) stored: StoredHead,
    pub(crate) reason: String,
}

/// What was found unreadable since the daemon started, and still is. *Cancel safety*: it only reads.
pub(crate) async fn list(log: &Log) -> Result<Vec<(Quarantined, Option<StoredHead>)>, LogError> {
    let mut list = Vec::new();
    for quarantined in log.quarantined() {
        match look(log, &quarantined.stream).await {
            Ok(found) => list.push((quarantined, Some(found.stored))),
            Err(QuarantineError::NotQuarantined(stream)) => log.end_quarantine(&stream),
            // The database itself cannot read it.
            Err(QuarantineError::Log(LogError::Corrupt(_))) => list.push((quarantined, None)),
            Err(QuarantineError::Log(error) | QuarantineError::Commit(CommitError::Log(error))) => {
                return Err(error);
            }
            Err(QuarantineError::Commit(_)) => list.push((quarantined, None)),
        }
    }
    Ok(list)
}

/// A head that cannot be read. *Cancel safety*: it only reads.
pub(crate) async fn look(log: &Log, stream: &str) -> Result<Unreadable, QuarantineError> {
    let missing = || QuarantineError::NotQuarantined(stream.to_owned());
    let name = StreamId::new(stream).map_err(|_| missing())?;
    let stored = log.head(&name).await?.ok_or_else(missing)?;
    let reason = unreadable(&stored.stream, &stored.head).ok_or_else(missing)?;
    Ok(Unreadable { stored, reason })
}

/// Removes a head that cannot be read, and its events, if it is at the version that was seen. *Cancel safety*: dropped
/// half-way, it may or may not be gone.
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
    /// It is not there, or can be read.
    #[error("`{0}` is not quarantined")]
    NotQuarantined(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}
