//! A commit that survives an outage of the database.
//!
//! This is for the only writer of a stream, as long as it holds its lease. While the log can't be reached,
//! nothing is decided without it, so the same commit can be made when the log is back. If the answer to a commit
//! was lost with the connection, the stream shows whether it was made: its last events are those of the commit,
//! or they aren't. If the stream is older than what its writer was told, nobody else wrote, because versions only
//! grow: the server has lost a relaxed commit in a crash.

use std::{sync::Arc, time::Duration};

use kernel::{Clock, Deadline, Scope};

use crate::{
    commit::{Commit, CommitError, Committed, StoredHead, Write},
    error::LogError,
    log::Log,
    names::{Sequence, StreamId, Version},
};

/// The pause before the next attempt. While it can't connect, the engine itself waits longer.
const PAUSE: Duration = Duration::from_millis(100);

impl Log {
    /// Makes a commit of one write, and retries while the log can't be reached. When the scope is cancelled, it
    /// returns the last error. *Cancel safety*: that of [`commit`](Self::commit).
    pub async fn commit_through(
        &self,
        commit: Commit,
        clock: &Arc<dyn Clock>,
        scope: &Scope,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut is_answer_lost = false;
        loop {
            let refused = match self.commit(commit.clone()).await {
                Ok(committed) => return Ok(committed),
                Err(refused) => refused,
            };
            match refused {
                CommitError::Log(error) if error.is_outage() && !scope.is_cancelled() => {
                    is_answer_lost |= matches!(error, LogError::OutcomeUnknown(_));
                    tracing::debug!(%error, "a commit waits for the log to become reachable");
                }
                CommitError::Conflict {
                    actual: Some(actual),
                    stream,
                } if is_answer_lost => match self.is_made(&commit, &actual).await {
                    Ok(true) => return Ok(vec![made(&actual)]),
                    Ok(false) => return Err(refusal(&commit, stream, Some(actual))),
                    Err(error) if error.is_outage() && !scope.is_cancelled() => {}
                    Err(error) => return Err(error.into()),
                },
                CommitError::Conflict { actual, stream } => return Err(refusal(&commit, stream, actual)),
                refused => return Err(refused),
            }
            tokio::select! {
                _ = scope.wait() => {}
                () = Deadline::after(clock, PAUSE).passed() => {}
            }
        }
    }

    /// Whether the stream is in its current state because of this commit.
    async fn is_made(&self, commit: &Commit, actual: &StoredHead) -> Result<bool, LogError> {
        let [write] = &*commit.writes else {
            return Ok(false);
        };
        if write.head.as_ref().is_some_and(|head| *head != actual.head) {
            return Ok(false);
        }
        self.ends_with(write, actual.last_sequence).await
    }

    async fn ends_with(&self, write: &Write, last: Sequence) -> Result<bool, LogError> {
        let count = write.events.len();
        let Some(before) = last.get().checked_sub(count as u64) else {
            return Ok(false);
        };
        let limit = u32::try_from(count).unwrap_or(u32::MAX);
        let page = self
            .read(&write.stream, Sequence::from_u64(before), limit)
            .await?;
        let is_same = page.events.len() == count
            && page
                .events
                .iter()
                .zip(&write.events)
                .all(|(event, new)| event.kind == new.kind && event.body == new.body);
        Ok(is_same)
    }
}

/// Why a commit of the only writer was refused.
fn refusal(commit: &Commit, stream: StreamId, actual: Option<Box<StoredHead>>) -> CommitError {
    // Nobody removes a stream that is being written. If it doesn't exist, its first write was lost.
    let version = actual.as_ref().map_or(Version::NONE, |actual| actual.version);
    let is_older = |write: &Write| write.stream == stream && version < write.expected;
    let is_lost = commit.writes.iter().any(is_older);
    match is_lost {
        true => CommitError::RolledBack { stream, actual },
        false => CommitError::Conflict { stream, actual },
    }
}

fn made(actual: &StoredHead) -> Committed {
    Committed {
        version: actual.version,
        last_sequence: actual.last_sequence,
    }
}
