//! Makes the readable rest of a damaged log consistent, so that it can be exported and restored.
//!
//! - A blob that doesn't match its address is left out, together with all references to it.
//! - An event that can't be read is replaced by one of the kind [`DAMAGED_EVENT`], so that nobody takes the
//!   stream for complete.
//!
//! What was left out is reported.

use std::collections::HashSet;

use crate::{
    blob::BlobId,
    blob_io::{BlobVerifier, piece_stored},
    commit::Event,
    names::{Sequence, StreamId},
    record::Record,
};

/// The kind of an event that replaces one that couldn't be read.
pub const DAMAGED_EVENT: &str = "damaged";

/// How many chunks are held back until their blob is verified: 16 MiB. If a larger blob turns out to be damaged,
/// its readable part is kept under the address that it really has.
const HELD_CHUNKS: usize = 64;
/// How many problems are listed. More would add nothing.
const LISTED: usize = 100;

/// Turns records as they were read into consistent ones.
#[derive(Debug, Default)]
pub(crate) struct Repairer {
    held: Vec<Record>,
    sent: BlobVerifier,
    is_broken: bool,
    is_sending: bool,
    damaged: HashSet<BlobId>,
    stream: Option<(StreamId, Sequence, Sequence, i64)>,
    left_out: Vec<String>,
    unlisted: u64,
}

impl Repairer {
    /// Handles a record and appends the resulting ones.
    pub(crate) fn take(&mut self, record: Record, out: &mut Vec<Record>) {
        match record {
            Record::Chunk { compressed } => self.chunk(compressed, out),
            Record::Blob { id, info } => {
                let sent = std::mem::take(&mut self.sent);
                let is_whole = !std::mem::take(&mut self.is_broken) && sent.is_whole(id, info);
                let was_sending = std::mem::take(&mut self.is_sending);
                let held = std::mem::take(&mut self.held);
                if is_whole {
                    out.extend(held);
                    out.push(Record::Blob { id, info });
                    return;
                }
                self.damaged.insert(id);
                self.say(format!("the blob {id} is damaged"));
                if was_sending {
                    let (id, info) = (sent.id(), sent.info());
                    out.push(Record::Blob { id, info });
                }
            }
            Record::Stream {
                id,
                mut head,
                first,
                last,
            } => {
                self.finish_stream(out);
                head.blobs.retain(|blob| !self.damaged.contains(blob));
                self.stream = Some((id.clone(), first, last, 0));
                out.push(Record::Stream {
                    id,
                    head,
                    first,
                    last,
                });
            }
            Record::Event { event, mut blobs } => {
                blobs.retain(|blob| !self.damaged.contains(blob));
                if let Some((stream, next, last, _)) = &self.stream
                    && !(*next..=*last).contains(&event.sequence)
                {
                    let text = format!("the stream `{stream}` has event {} out of place", event.sequence);
                    return self.say(text);
                }
                self.fill(event.sequence, out);
                if let Some((_, next, _, at_ms)) = &mut self.stream {
                    (*next, *at_ms) = (event.sequence.next(), event.at_ms);
                }
                out.push(Record::Event { event, blobs });
            }
            Record::LeftOut { what, blob } => {
                self.damaged.extend(blob);
                self.say(what);
            }
            Record::End => {
                self.finish_stream(out);
                out.push(Record::End);
            }
        }
    }

    /// What was left out, one sentence each.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let mut left_out = self.left_out.clone();
        if self.unlisted > 0 {
            left_out.push(format!("{} more", self.unlisted));
        }
        left_out
    }

    fn chunk(&mut self, compressed: Vec<u8>, out: &mut Vec<Record>) {
        let Some(piece) = piece_stored(&compressed) else {
            self.is_broken = true;
            return;
        };
        self.sent.add(&piece, &compressed);
        let record = Record::Chunk { compressed };
        if self.is_sending {
            out.push(record);
            return;
        }
        self.held.push(record);
        if self.held.len() > HELD_CHUNKS {
            self.is_sending = true;
            out.append(&mut self.held);
        }
    }

    /// Fills a gap before this event with replacements.
    fn fill(&mut self, up_to: Sequence, out: &mut Vec<Record>) {
        let Some((stream, next, _, at_ms)) = &mut self.stream else {
            return;
        };
        if *next >= up_to {
            return;
        }
        let (stream, from) = (stream.clone(), *next);
        while *next < up_to {
            let event = Event {
                sequence: *next,
                at_ms: *at_ms,
                kind: DAMAGED_EVENT.into(),
                body: b"{}".as_slice().into(),
            };
            out.push(Record::Event {
                event,
                blobs: Vec::new(),
            });
            *next = next.next();
        }
        self.say(format!(
            "the stream `{stream}` lacks events from {from} on, before {up_to}"
        ));
    }

    fn finish_stream(&mut self, out: &mut Vec<Record>) {
        if let Some((_, _, last, _)) = &self.stream {
            let end = last.next();
            self.fill(end, out);
        }
        self.stream = None;
    }

    fn say(&mut self, what: String) {
        match self.left_out.len() < LISTED {
            true => self.left_out.push(what),
            false => self.unlisted += 1,
        }
    }
}
