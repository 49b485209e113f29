//! Output as stored in the log: heads and events.

use std::sync::Arc;

use eventlog::{Event, Head, Log, LogError, NewEvent, StoredHead};
use protocol::{JobChannel, JobId, JobProgress};
use serde::{Deserialize, Serialize};

use super::buffer::Draft;
use super::item::{OutputItem, OutputSummary, Piece};
use crate::history;

/// The status of the heads of output. There is only one, because the state of the job is in its own stream.
const STATUS: &str = "kept";
const PROGRESS: &str = "progress";

/// The head of the stream: the summary, and who wrote it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct OutputHead {
    /// The number of the attempt that wrote last. It fences off all earlier ones.
    pub(super) attempt: u32,
    #[serde(flatten)]
    pub(super) summary: OutputSummary,
}

impl OutputHead {
    pub(super) fn of(stored: &StoredHead) -> Result<Self, LogError> {
        let mut head: Self = parse(&stored.head.body)?;
        head.summary.last_sequence = stored.last_sequence;
        Ok(head)
    }

    pub(super) fn to_head(&self) -> Result<Head, LogError> {
        Ok(Head {
            kind: Arc::from(history::OUTPUT_KIND),
            status: Arc::from(STATUS),
            body: serialize(self)?,
            blobs: Vec::new(),
        })
    }
}

/// The summary of a job's output.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn summary(log: &Log, id: JobId) -> Result<OutputSummary, LogError> {
    let head = log.head(&history::output_stream(id)).await?;
    let read = |stored| log.or_quarantine(stored, OutputHead::of(stored));
    let head = head.as_ref().map(read).transpose()?;
    Ok(head.map(|head| head.summary).unwrap_or_default())
}

/// The size of a job's output; `None` if it can't be read, and then it is quarantined.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn readable_bytes(log: &Log, id: JobId) -> Result<Option<u64>, LogError> {
    let Some(stored) = log.head(&history::output_stream(id)).await? else {
        return Ok(Some(0));
    };
    let head = log.readable(&stored, OutputHead::of(&stored));
    Ok(head.map(|head| head.summary.bytes))
}

/// Why the head of an output can't be read, if it can't.
pub(crate) fn unreadable_output(body: &[u8]) -> Option<serde_json::Error> {
    serde_json::from_slice::<OutputHead>(body).err()
}

pub(super) fn event(draft: Draft) -> Result<NewEvent, LogError> {
    let (kind, body) = match draft {
        Draft::Piece(channel, bytes) => (channel.as_str(), Arc::from(bytes)),
        Draft::Progress(progress) => (PROGRESS, serialize(&progress)?),
    };
    Ok(NewEvent {
        kind: Arc::from(kind),
        body,
        blobs: Vec::new(),
    })
}

/// The content of an event. An unknown kind comes from a later version and is skipped.
pub(super) fn item(event: &Event) -> Result<Option<OutputItem>, LogError> {
    if &*event.kind == PROGRESS {
        let progress: JobProgress = parse(&event.body)?;
        let sequence = event.sequence;
        return Ok(Some(OutputItem::Progress { sequence, progress }));
    }
    let channel = JobChannel::ALL
        .into_iter()
        .find(|channel| channel.as_str() == &*event.kind);
    Ok(channel.map(|channel| {
        OutputItem::Piece(Piece {
            sequence: event.sequence,
            at_ms: event.at_ms,
            channel,
            bytes: Arc::clone(&event.body),
        })
    }))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, LogError> {
    serde_json::from_slice(body).map_err(|error| LogError::Corrupt(Arc::new(error)))
}

fn serialize(value: &impl Serialize) -> Result<Arc<[u8]>, LogError> {
    let body = serde_json::to_vec(value).map_err(|error| LogError::Engine(Arc::new(error)))?;
    Ok(body.into())
}
