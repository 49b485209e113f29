//! How jobs are stored in the log: the names of their streams, their heads, and their events.
//!
//! Bodies are JSON. Readers are lenient: they ignore unknown fields and unknown events, so a job written by a
//! newer daemon is still readable.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use eventlog::{BlobId, CommitError, EntityEvent, EntityRecord, Event, Head, NewEvent, Sequence, StreamId};
use protocol::JobId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    RESULT_LIMIT_BYTES,
    job::{Ending, FailReason, Job, Record},
};
use eventlog::UnixMs;

pub(crate) const OUTPUT_KIND: &str = "job-output";
pub(crate) const KEY_KIND: &str = "job-key";
pub(crate) const LANE_KIND: &str = "job-lane";

/// The longest lane name that appears in the name of its stream; a longer one is replaced by its hash. It leaves room
/// for the rest of [`NAME_LIMIT_BYTES`](eventlog::NAME_LIMIT_BYTES).
const PLAIN_LANE_BYTES: usize = 200;
/// How deeply a result may be nested. The JSON parser gives up at 128, and a result is a few levels below the top.
pub(crate) const RESULT_LIMIT_LEVELS: usize = 64;

/// An event in the life of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moment {
    /// The position of its event.
    pub sequence: Sequence,
    /// When it happened.
    pub at: UnixMs,
    /// What happened.
    pub happening: Happening,
}

/// What happened to a job.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// It was submitted.
    Submitted {
        /// Who submitted it.
        by: String,
    },
    /// A worker claimed it.
    Claimed {
        /// The number of the attempt.
        attempt: u32,
        /// The home of the worker.
        home: Arc<str>,
    },
    /// A claim was released before any work was done.
    Released {
        /// The number that the attempt would have had.
        attempt: u32,
    },
    /// A cancellation was requested.
    CancelRequested {
        /// Who requested it.
        by: String,
        /// The reason.
        #[serde(default)]
        why: String,
    },
    /// An attempt failed, and there will be another one.
    Retrying {
        /// How it ended.
        ending: Ending,
        /// Why it counts as failed.
        reason: FailReason,
        /// When the next attempt may start.
        not_before: UnixMs,
    },
    /// Its worker died or was stopped.
    Interrupted {
        /// The number of the attempt.
        attempt: u32,
        /// What is known about it.
        #[serde(default)]
        text: String,
    },
    /// It succeeded.
    Succeeded {
        /// How the last attempt ended.
        ending: Ending,
    },
    /// It failed for good.
    Failed {
        /// The reason.
        reason: FailReason,
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
    /// It was cancelled, and nothing of it is running.
    Cancelled {
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
}

impl Happening {
    /// Its name, which is the kind of its event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Submitted { .. } => SUBMITTED,
            Self::Claimed { .. } => CLAIMED,
            Self::Released { .. } => "released",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::Retrying { .. } => "retrying",
            Self::Interrupted { .. } => "interrupted",
            Self::Succeeded { .. } => SUCCEEDED,
            Self::Failed { .. } => FAILED,
            Self::Cancelled { .. } => CANCELLED,
        }
    }
}

const SUBMITTED: &str = "submitted";
const CLAIMED: &str = "claimed";
const SUCCEEDED: &str = "succeeded";
const FAILED: &str = "failed";
const CANCELLED: &str = "cancelled";

/// Whether an event of this kind means that a worker now has the job.
pub(crate) fn is_claim(kind: &str) -> bool {
    kind == CLAIMED
}

pub(crate) fn is_end(kind: &str) -> bool {
    matches!(kind, SUCCEEDED | FAILED | CANCELLED)
}

/// What a job was submitted with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Submission {
    pub(crate) by: String,
    pub(crate) payload: Arc<[u8]>,
    pub(crate) blobs: Vec<BlobId>,
}

/// The body of `submitted`. A JSON payload is embedded directly, so that people can read it; any other payload is
/// encoded as Base64. A string wouldn't do: some bytes take up six times their size in one.
#[derive(Debug, Serialize, Deserialize)]
struct SubmittedBody<'a> {
    event: &'a str,
    by: String,
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// The log keeps the blobs, but doesn't record which event they belong to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blobs: Vec<String>,
}

/// The first event of a job.
pub(crate) fn submitted_event(by: &str, payload: &[u8], blobs: Vec<BlobId>) -> Result<NewEvent, CommitError> {
    // Whitespace around a raw value isn't part of it, and `null` would be read as `None`, but both must
    // survive the round trip.
    let raw = serde_json::from_slice::<&RawValue>(payload)
        .ok()
        .filter(|raw| raw.get().len() == payload.len() && raw.get() != "null");
    let body = SubmittedBody {
        event: SUBMITTED,
        by: by.to_owned(),
        payload: raw,
        payload_base64: raw.is_none().then(|| BASE64_STANDARD.encode(payload)),
        blobs: blobs.iter().map(ToString::to_string).collect(),
    };
    let event = NewEvent::json(SUBMITTED, &body)?;
    Ok(NewEvent { blobs, ..event })
}

/// What a job was submitted with; `None` if this is a different event, or can't be parsed.
pub(crate) fn submission_of(event: &Event) -> Option<Submission> {
    let body = submitted_body(event)?;
    let payload = match (body.payload, body.payload_base64) {
        (Some(raw), _) => Arc::from(raw.get().as_bytes()),
        (None, Some(text)) => Arc::from(BASE64_STANDARD.decode(text).ok()?),
        (None, None) => return None,
    };
    let blobs = body.blobs.iter().map(|text| text.parse().ok());
    Some(Submission {
        by: body.by,
        payload,
        blobs: blobs.collect::<Option<_>>()?,
    })
}

impl EntityEvent for Happening {
    /// A submission contains more than this; [`submitted_event`] encodes it.
    fn encode(&self) -> Result<NewEvent, CommitError> {
        NewEvent::json(self.name(), self)
    }
}

/// Decodes an event; `None` if this daemon doesn't know its kind.
pub(crate) fn moment(event: &Event) -> Option<Moment> {
    let happening = if &*event.kind == SUBMITTED {
        // The payload is skipped here, however deep it is.
        Happening::Submitted {
            by: submitted_body(event)?.by,
        }
    } else {
        let happening = serde_json::from_slice::<Happening>(&event.body).ok()?;
        if happening.name() != &*event.kind {
            return None;
        }
        happening
    };
    Some(Moment {
        sequence: event.sequence,
        at: UnixMs(u64::try_from(event.at_ms).unwrap_or(0)),
        happening,
    })
}

fn submitted_body(event: &Event) -> Option<SubmittedBody<'_>> {
    if &*event.kind != SUBMITTED {
        return None;
    }
    serde_json::from_slice(&event.body).ok()
}

/// Why a head of this crate can't be read; `None` if it can, or belongs to another crate.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    match &*head.kind {
        Record::KIND => Job::problem(stream, head),
        KEY_KIND => serde_json::from_slice::<crate::submit::IdempotencyKey>(&head.body).err(),
        OUTPUT_KIND => crate::output::unreadable_output(&head.body),
        _ => None,
    }
}

/// A result that fits into a head and can be read back: the given one, or a note that it was left out.
pub(crate) fn bounded_result(result: Value) -> Value {
    if !is_deeper(&result, RESULT_LIMIT_LEVELS) && result.to_string().len() <= RESULT_LIMIT_BYTES {
        return result;
    }
    serde_json::json!({ "left_out": "the result was too large to be kept" })
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, below)),
        _ => false,
    }
}

pub(crate) fn job_stream(id: JobId) -> StreamId {
    stream(&format!("{}/{id}", Record::KIND))
}

pub(crate) fn output_stream(id: JobId) -> StreamId {
    stream(&format!("{OUTPUT_KIND}/{id}"))
}

/// The stream of an idempotency key. Keys are free text, so the name contains their hash.
pub(crate) fn key_stream(key: &str) -> StreamId {
    stream(&format!("{KEY_KIND}/{}", blake3::hash(key.as_bytes())))
}

/// The stream of a lane: named after the lane if its name is suitable, otherwise after its hash.
pub(crate) fn lane_stream(name: &str) -> StreamId {
    if name.len() <= PLAIN_LANE_BYTES && !name.chars().any(char::is_control) {
        stream(&format!("{LANE_KIND}/{name}"))
    } else {
        stream(&format!("{LANE_KIND}-hash/{}", blake3::hash(name.as_bytes())))
    }
}

fn stream(name: &str) -> StreamId {
    match StreamId::new(name) {
        Ok(stream) => stream,
        Err(bad) => unreachable!("ids, hashes and lanes that were looked at make names: {bad}"),
    }
}
