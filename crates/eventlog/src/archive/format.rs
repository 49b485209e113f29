//! The lines of an archive, and how they map to the records of a log.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::{
    address::HOLE_BYTES,
    blob::{BlobId, CHUNK_BYTES},
    blob_io::Piece,
    commit::{BODY_LIMIT_BYTES, COMMIT_LIMIT_ITEMS, Event, Head},
    names::{Sequence, StreamId, check_name},
};

pub(super) const FORMAT: &str = "tidelock-archive";
/// The first version had no holes.
pub(super) const VERSION: u32 = 2;
/// The longest line: the largest body with each byte escaped, the blobs, and the rest. A longer line isn't from
/// an archive.
pub(super) const LINE_LIMIT_BYTES: usize = 6 * BODY_LIMIT_BYTES + 70 * COMMIT_LIMIT_ITEMS + 64 * 1024;

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Header(HeaderLine),
    Chunk(ChunkLine),
    Hole(HoleLine),
    Blob(BlobLine),
    Stream(StreamLine),
    Event(EventLine),
    End(EndLine),
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct HeaderLine {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChunkLine {
    pub(super) content: Bytes,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoleLine {
    pub(super) bytes: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobLine {
    pub(super) id: String,
    pub(super) size_bytes: u64,
    pub(super) chunks: u32,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamLine {
    id: String,
    kind: String,
    status: String,
    body: Bytes,
    blobs: Vec<String>,
    first: u64,
    last: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventLine {
    sequence: u64,
    at_ms: i64,
    kind: String,
    body: Bytes,
    blobs: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    pub(super) records: u64,
    pub(super) blake3: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<String>,
}

/// Bytes, as readable text where possible.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bytes {
    Text(String),
    Base64(String),
}

impl Bytes {
    pub(super) fn encode(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    /// The bytes, if they are valid and within the limit.
    pub(super) fn decode(self, limit_bytes: usize) -> Option<Vec<u8>> {
        let bytes = match self {
            Self::Text(text) => text.into_bytes(),
            Self::Base64(text) => STANDARD.decode(text).ok()?,
        };
        (bytes.len() <= limit_bytes).then_some(bytes)
    }
}

impl ChunkLine {
    pub(super) fn decode(self) -> Option<Vec<u8>> {
        self.content.decode(CHUNK_BYTES).filter(|chunk| !chunk.is_empty())
    }
}

impl HoleLine {
    pub(super) fn decode(self) -> Option<Piece> {
        let is_one = self.bytes > 0 && self.bytes.is_multiple_of(HOLE_BYTES as u64);
        is_one.then_some(Piece::Hole(self.bytes))
    }
}

impl StreamLine {
    pub(super) fn encode(id: &StreamId, head: &Head, first: Sequence, last: Sequence) -> Self {
        Self {
            id: id.to_string(),
            kind: head.kind.to_string(),
            status: head.status.to_string(),
            body: Bytes::encode(&head.body),
            blobs: head.blobs.iter().map(BlobId::to_string).collect(),
            first: first.get(),
            last: last.get(),
        }
    }

    /// The stream, if it is valid.
    pub(super) fn decode(self) -> Option<(StreamId, Head, Sequence, Sequence)> {
        check_name(&self.kind).ok()?;
        check_name(&self.status).ok()?;
        let head = Head {
            kind: self.kind.into(),
            status: self.status.into(),
            body: self.body.decode(BODY_LIMIT_BYTES)?.into(),
            blobs: decode_blobs(&self.blobs)?,
        };
        let (first, last) = (decode_number(self.first)?, decode_number(self.last)?);
        Some((StreamId::new(&self.id).ok()?, head, first, last))
    }
}

impl EventLine {
    pub(super) fn encode(event: &Event, blobs: &[BlobId]) -> Self {
        Self {
            sequence: event.sequence.get(),
            at_ms: event.at_ms,
            kind: event.kind.to_string(),
            body: Bytes::encode(&event.body),
            blobs: blobs.iter().map(BlobId::to_string).collect(),
        }
    }

    /// The event, if it is valid.
    pub(super) fn decode(self) -> Option<(Event, Vec<BlobId>)> {
        check_name(&self.kind).ok()?;
        let event = Event {
            sequence: decode_number(self.sequence)?,
            at_ms: self.at_ms,
            kind: self.kind.into(),
            body: self.body.decode(BODY_LIMIT_BYTES)?.into(),
        };
        Some((event, decode_blobs(&self.blobs)?))
    }
}

fn decode_blobs(blobs: &[String]) -> Option<Vec<BlobId>> {
    if blobs.len() > COMMIT_LIMIT_ITEMS {
        return None;
    }
    blobs.iter().map(|id| id.parse().ok()).collect()
}

/// A sequence number that the engines can continue from.
fn decode_number(number: u64) -> Option<Sequence> {
    (number < i64::MAX as u64).then_some(Sequence::from_u64(number))
}
