//! Small things that several modules need.

use std::sync::Arc;

use eventlog::{
    BlobError, BlobId, CHUNK_BYTES, Event, Head, Log, NewEvent, Sequence, StreamId, Version, Write,
};

pub(crate) fn stream(name: &str) -> StreamId {
    StreamId::new(name).unwrap()
}

pub(crate) fn head(status: &str, body: &str) -> Head {
    Head {
        kind: Arc::from("job"),
        status: Arc::from(status),
        body: body.as_bytes().into(),
        blobs: Vec::new(),
    }
}

pub(crate) fn event(text: &str) -> NewEvent {
    NewEvent {
        kind: Arc::from("note"),
        body: text.as_bytes().into(),
        blobs: Vec::new(),
    }
}

/// A write that makes a stream or moves it on.
pub(crate) fn write(name: &str, expected: Version, status: &str, events: &[&str]) -> Write {
    Write {
        stream: stream(name),
        expected,
        head: Some(head(status, status)),
        events: events.iter().map(|text| event(text)).collect(),
    }
}

pub(crate) fn text(event: &Event) -> String {
    String::from_utf8(event.body.to_vec()).unwrap()
}

/// All events of a stream with their places.
pub(crate) async fn contents(log: &Log, name: &str) -> Vec<(u64, String)> {
    let page = log.read(&stream(name), Sequence::START, 10_000).await.unwrap();
    page.events
        .iter()
        .map(|event| (event.sequence.get(), text(event)))
        .collect()
}

/// The same write, with blobs that its head refers to.
pub(crate) fn with_blobs(mut write: Write, blobs: &[BlobId]) -> Write {
    let head = write.head.as_mut().unwrap();
    head.blobs = blobs.to_vec();
    write
}

/// Puts content and answers its address.
pub(crate) async fn put(log: &Log, content: &[u8]) -> BlobId {
    log.put_blob(content).await.unwrap().0
}

/// All of a blob.
pub(crate) async fn read_blob(log: &Log, id: BlobId) -> Result<Vec<u8>, BlobError> {
    let mut reader = log.read_blob(id).await?;
    let mut content = Vec::new();
    while let Some(chunk) = reader.next_chunk().await? {
        assert!(!chunk.is_empty() && chunk.len() <= CHUNK_BYTES);
        content.extend(chunk);
    }
    assert!(reader.next_chunk().await?.is_none());
    Ok(content)
}

/// Bytes that do not compress, the same each time.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}
