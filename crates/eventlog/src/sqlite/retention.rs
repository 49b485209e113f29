//! Drops old events: a reader decides up to where, and the writer drops them step by step.
//!
//! The decision is made on a snapshot and stays valid: commits only add younger events, so what was too old or
//! too much still is.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::apply::unix_ms;
use crate::{
    blob::Trimmed,
    error::LogError,
    names::{Sequence, StreamId},
    store::RetentionPolicy,
};

/// How many streams are read before the reader's transaction ends. Long transactions keep the write-ahead log
/// long.
const SCAN_STREAMS: u32 = 256;
/// How many events one step drops at most while commits wait.
const DROP_EVENTS: u64 = 512;
/// How many bytes of bodies one step drops at most while commits wait.
const DROP_BYTES: u64 = 4 * 1024 * 1024;

/// Drop the events of a stream up to a sequence number, if it still exists and has this kind.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    number: i64,
    pub(super) stream: StreamId,
    pub(super) kind: Arc<str>,
    pub(super) up_to: Sequence,
}

/// Some cuts, and the stream after which to continue.
pub(super) type Cuts = (Vec<Cut>, Option<StreamId>);

/// Applies the policy to the next streams of a kind.
pub(super) fn cuts(
    connection: &Connection,
    kind: &Arc<str>,
    policy: RetentionPolicy,
    after: Option<&StreamId>,
) -> Result<Cuts, LogError> {
    let transaction = connection.unchecked_transaction()?;
    let mut list = transaction.prepare_cached(
        "SELECT number, id, first_sequence, last_sequence FROM streams
         WHERE kind = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    )?;
    let after = after.map_or("", StreamId::as_str);
    let mut rows = list.query(params![&**kind, after, SCAN_STREAMS])?;
    let (mut cuts, mut seen, mut last_seen) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        let (number, first, last): (i64, u64, u64) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let stream =
            StreamId::new(&row.get::<_, String>(1)?).map_err(|bad| LogError::Corrupt(Arc::new(bad)))?;
        let too_old = too_old(&transaction, number, last, policy)?;
        let too_many = too_many(&transaction, number, policy)?;
        let up_to = Sequence::from_u64(too_old.max(too_many));
        if up_to.get() >= first {
            let (stream, kind) = (stream.clone(), Arc::clone(kind));
            cuts.push(Cut {
                number,
                stream,
                kind,
                up_to,
            });
        }
        seen += 1;
        last_seen = Some(stream);
    }
    Ok((cuts, last_seen.filter(|_| seen == SCAN_STREAMS)))
}

/// The last of the oldest events that are all too old. A young event keeps those after it, whatever their times.
fn too_old(
    connection: &Connection,
    stream: i64,
    last: u64,
    policy: RetentionPolicy,
) -> rusqlite::Result<u64> {
    let Some(max_age) = policy.max_age else {
        return Ok(0);
    };
    let max_age_ms = i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX);
    let kept_from_ms = unix_ms().saturating_sub(max_age_ms);
    let first_young: Option<u64> = connection
        .prepare_cached(
            "SELECT sequence FROM events WHERE stream = ?1 AND at_ms >= ?2 ORDER BY sequence LIMIT 1",
        )?
        .query_row(params![stream, kept_from_ms], |row| row.get(0))
        .optional()?;
    Ok(first_young.map_or(last, |sequence| sequence - 1))
}

/// The newest event that no longer fits.
fn too_many(connection: &Connection, stream: i64, policy: RetentionPolicy) -> rusqlite::Result<u64> {
    let Some(max_bytes) = policy.max_bytes_per_stream else {
        return Ok(0);
    };
    let mut newest_first = connection.prepare_cached(
        "SELECT sequence, length(body) FROM events WHERE stream = ?1 ORDER BY sequence DESC",
    )?;
    let mut rows = newest_first.query([stream])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += row.get::<_, u64>(1)?;
        if bytes > max_bytes {
            return row.get(0);
        }
    }
    Ok(0)
}

/// Drops some of the events of a cut. `None` if there are none left.
pub(super) fn trim(connection: &Connection, cut: &Cut) -> Result<Option<Trimmed>, LogError> {
    // The stream is looked up by number: another one of the same name may have been created since, and its events
    // are young.
    let is_there = connection
        .prepare_cached("SELECT 1 FROM streams WHERE number = ?1 AND kind = ?2")?
        .exists(params![cut.number, &*cut.kind])?;
    if !is_there {
        return Ok(None);
    }
    Ok(trim_stream(connection, cut.number, cut.up_to)?)
}

/// Drops some of the events of a stream up to a sequence number. `None` if there are none left.
pub(super) fn trim_stream(
    connection: &Connection,
    number: i64,
    up_to: Sequence,
) -> rusqlite::Result<Option<Trimmed>> {
    let Some(dropped) = drop_oldest(connection, number, up_to, Budget::STEP)? else {
        return Ok(None);
    };
    let first = dropped.last.next();
    connection
        .prepare_cached("UPDATE streams SET first_sequence = ?2 WHERE number = ?1")?
        .execute(params![number, first.get()])?;
    let events = dropped.events;
    Ok(Some(Trimmed { events, first }))
}

pub(super) struct Dropped {
    events: u64,
    bytes: u64,
    last: Sequence,
}

/// How much one step may still drop. One large event may exceed the remaining bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    events: u64,
    bytes: u64,
}

impl Budget {
    pub(super) const STEP: Self = Self {
        events: DROP_EVENTS,
        bytes: DROP_BYTES,
    };

    pub(super) fn is_spent(self) -> bool {
        self.events == 0 || self.bytes == 0
    }

    pub(super) fn spend(&mut self, dropped: &Dropped) {
        self.events = self.events.saturating_sub(dropped.events);
        self.bytes = self.bytes.saturating_sub(dropped.bytes);
    }

    /// Counts work that wasn't an event.
    pub(super) fn spend_one(&mut self) {
        self.events = self.events.saturating_sub(1);
    }
}

/// Drops the oldest events of a stream up to a sequence number, with their references, within the budget. `None`
/// if there are none.
pub(super) fn drop_oldest(
    connection: &Connection,
    stream: i64,
    up_to: Sequence,
    budget: Budget,
) -> rusqlite::Result<Option<Dropped>> {
    let mut oldest = connection.prepare_cached(
        "SELECT sequence, length(body) FROM events WHERE stream = ?1 AND sequence <= ?2
         ORDER BY sequence LIMIT ?3",
    )?;
    let mut rows = oldest.query(params![stream, up_to.get(), budget.events])?;
    let (mut events, mut bytes, mut last) = (0, 0, 0);
    while bytes < budget.bytes
        && let Some(row) = rows.next()?
    {
        (events, bytes, last) = (events + 1, bytes + row.get::<_, u64>(1)?, row.get(0)?);
    }
    if events == 0 {
        return Ok(None);
    }
    connection
        .prepare_cached("DELETE FROM events WHERE stream = ?1 AND sequence <= ?2")?
        .execute(params![stream, last])?;
    connection
        .prepare_cached("DELETE FROM blob_references WHERE stream = ?1 AND sequence > 0 AND sequence <= ?2")?
        .execute(params![stream, last])?;
    let last = Sequence::from_u64(last);
    Ok(Some(Dropped { events, bytes, last }))
}
