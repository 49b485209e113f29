//! A cache of the streams that the writer wrote last, so that it needn't look them up for every commit.
//!
//! There is only one writer, so the cache is always right. When a transaction is rolled back, the cache is
//! cleared.

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

/// How many streams are cached: all that are busy at one time, in some hundred kilobytes. When there are more,
/// the cache is cleared.
const CACHED_STREAMS: usize = 2048;

/// How many rollbacks are remembered. A writer that comes back after more of them gets a conflict.
const FAILURES_REMEMBERED: usize = 256;

/// A stream without the body of its head.
#[derive(Clone, Debug)]
pub(super) struct CachedStream {
    pub(super) number: i64,
    pub(super) version: Version,
    pub(super) last_sequence: u64,
    pub(super) kind: Arc<str>,
    pub(super) status: Arc<str>,
    pub(super) blobs: HeadBlobs,
}

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
pub(super) struct StreamCache {
    streams: HashMap<StreamId, CachedStream>,
    /// The versions that were assigned and then rolled back, oldest first; one range per rollback.
    rolled_back: VecDeque<RangeInclusive<u64>>,
}

impl StreamCache {
    /// The current state of a stream; `None` if it doesn't exist.
    pub(super) fn look(
        &mut self,
        connection: &Connection,
        stream: &StreamId,
    ) -> rusqlite::Result<Option<CachedStream>> {
        if let Some(cached) = self.streams.get(stream) {
            return Ok(Some(cached.clone()));
        }
        let mut look = connection.prepare_cached(
            "SELECT number, version, last_sequence, kind, status,
                 EXISTS (SELECT 1 FROM blob_references WHERE stream = number AND sequence = 0)
             FROM streams WHERE id = ?1",
        )?;
        let found = look.query_row([stream.as_str()], |row| {
            Ok(CachedStream {
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

    pub(super) fn remember(&mut self, stream: &StreamId, written: CachedStream) {
        if let Some(before) = self.streams.get_mut(stream) {
            *before = written;
            return;
        }
        if self.streams.len() >= CACHED_STREAMS {
            self.streams.clear();
        }
        self.streams.insert(stream.clone(), written);
    }

    /// Drops a stream that was removed from the cache.
    pub(super) fn forget(&mut self, stream: &StreamId) {
        self.streams.remove(stream);
    }

    /// Clears the cache, because the writes with these versions were rolled back.
    pub(super) fn roll_back(&mut self, versions: RangeInclusive<u64>) {
        self.streams.clear();
        if versions.is_empty() {
            return;
        }
        if let Some(last) = self.rolled_back.back_mut()
            && last.end() + 1 == *versions.start()
        {
            *last = *last.start()..=*versions.end();
            return;
        }
        if self.rolled_back.len() >= FAILURES_REMEMBERED {
            self.rolled_back.pop_front();
        }
        self.rolled_back.push_back(versions);
    }

    pub(super) fn was_rolled_back(&self, version: Version) -> bool {
        self.rolled_back
            .iter()
            .any(|range| range.contains(&version.get()))
    }
}
