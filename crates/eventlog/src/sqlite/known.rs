//! What the writer remembers of the streams that it wrote last, so that it need not look them up for every commit.
//!
//! It is the only one that writes, so what it remembers is what is there. When a transaction is taken back, all of it
//! is forgotten.

use std::{
    collections::{HashMap, VecDeque},
    ops::RangeInclusive,
    sync::Arc,
};

use rusqlite::{Connection, OptionalExtension};

use crate::{
    commit::Head,
    names::{StreamId, Version},
};

/// How many streams are remembered: all that are busy at one time, in some hundred kilobytes. When there are more, it
/// starts again.
const KNOWN_STREAMS: usize = 2048;

/// How many times of failure are remembered. A writer that comes back after more of them is told of a conflict.
const FAILURES_REMEMBERED: usize = 256;

/// A stream, but for what it says.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) number: i64,
    pub(super) version: Version,
    pub(super) last_sequence: u64,
    pub(super) kind: Arc<str>,
    pub(super) status: Arc<str>,
    pub(super) blobs: HeadBlobs,
}

/// Whether a head refers to blobs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadBlobs {
    None,
    Some,
}

impl HeadBlobs {
    pub(super) fn of(head: &Head) -> Self {
        if head.blobs.is_empty() {
            Self::None
        } else {
            Self::Some
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownStreams {
    streams: HashMap<StreamId, Known>,
    /// The versions that were given out and then taken back, oldest first; one range for each time of failure.
    taken_back: VecDeque<RangeInclusive<u64>>,
}

impl KnownStreams {
    /// A stream as it is now; `None` if it is not there.
    pub(super) fn look(
        &mut self,
        connection: &Connection,
        stream: &StreamId,
    ) -> rusqlite::Result<Option<Known>> {
        if let Some(known) = self.streams.get(stream) {
            return Ok(Some(known.clone()));
        }
        let mut look = connection.prepare_cached(
            "SELECT number, version, last_sequence, kind, status,
                 EXISTS (SELECT 1 FROM blob_references WHERE stream = number AND sequence = 0)
             FROM streams WHERE id = ?1",
        )?;
        let found = look.query_row([stream.as_str()], |row| {
            Ok(Known {
                number: row.get(0)?,
                version: Version::from_u64(row.get(1)?),
                last_sequence: row.get(2)?,
                kind: row.get(3)?,
                status: row.get(4)?,
                blobs: if row.get(5)? {
                    HeadBlobs::Some
                } else {
                    HeadBlobs::None
                },
            })
        });
        found.optional()
    }

    /// Remembers a stream as it was just written.
    pub(super) fn remember(&mut self, stream: &StreamId, known: Known) {
        if let Some(before) = self.streams.get_mut(stream) {
            *before = known;
            return;
        }
        if self.streams.len() >= KNOWN_STREAMS {
            self.streams.clear();
        }
        self.streams.insert(stream.clone(), known);
    }

    /// Forgets a stream that was removed.
    pub(super) fn forget(&mut self, stream: &StreamId) {
        self.streams.remove(stream);
    }

    /// Forgets everything, since what was written with these versions was taken back.
    pub(super) fn take_back(&mut self, versions: RangeInclusive<u64>) {
        self.streams.clear();
        if versions.is_empty() {
            return;
        }
        if let Some(last) = self.taken_back.back_mut()
            && last.end() + 1 == *versions.start()
        {
            *last = *last.start()..=*versions.end();
            return;
        }
        if self.taken_back.len() >= FAILURES_REMEMBERED {
            self.taken_back.pop_front();
        }
        self.taken_back.push_back(versions);
    }

    /// Whether a version was given out and then taken back.
    pub(super) fn was_taken_back(&self, version: Version) -> bool {
        self.taken_back.iter().any(|range| range.contains(&version.get()))
    }
}
