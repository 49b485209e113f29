//! The rows that we and the peers write: the same for all.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use eventlog::{Commit, Committed, Head, Log, NewEvent, StreamId, Version, Write};

pub(super) const KIND: &str = "job";
pub(super) const STATUS: &str = "running";
pub(super) const EVENT_KIND: &str = "output";
/// The size of a small state as JSON.
pub(super) const HEAD_BYTES: usize = 100;
pub(super) const EVENT_BYTES: usize = 200;

pub(super) fn body(bytes: usize) -> Arc<[u8]> {
    (0..bytes).map(|index| b'a' + (index % 26) as u8).collect()
}

pub(super) fn stream(number: usize) -> Result<StreamId> {
    Ok(StreamId::new(&format!("{KIND}/{number:026}"))?)
}

/// One writer of one stream. It prepares its content once, so that a commit costs no more than the log itself does.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    stream: StreamId,
    version: Version,
    head: Head,
    event: NewEvent,
}

impl Writer {
    /// A writer of events of that length, to a stream that does not exist yet.
    pub(super) fn new(stream: StreamId, event_bytes: usize) -> Self {
        Self {
            stream,
            version: Version::NONE,
            head: Head {
                kind: Arc::from(KIND),
                status: Arc::from(STATUS),
                body: body(HEAD_BYTES),
                blobs: Vec::new(),
            },
            event: NewEvent {
                kind: Arc::from(EVENT_KIND),
                body: body(event_bytes),
                blobs: Vec::new(),
            },
        }
    }

    pub(super) async fn write(&mut self, log: &Log, events: usize) -> Result<Committed> {
        let commit = self.commit(events);
        self.send(log, commit).await
    }

    pub(super) async fn write_relaxed(&mut self, log: &Log, events: usize) -> Result<Committed> {
        let commit = self.commit(events).relaxed();
        self.send(log, commit).await
    }

    fn commit(&self, events: usize) -> Commit {
        Commit::one(Write {
            stream: self.stream.clone(),
            expected: self.version,
            head: Some(self.head.clone()),
            events: vec![self.event.clone(); events],
        })
    }

    async fn send(&mut self, log: &Log, commit: Commit) -> Result<Committed> {
        let answers = log.commit(commit).await?;
        let committed = *answers.first().context("a commit of one write has one answer")?;
        self.version = committed.version;
        Ok(committed)
    }
}
