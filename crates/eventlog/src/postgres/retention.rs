//! Drops old events: one statement decides up to where for many streams, then each stream is cut step by step.
//!
//! The decision is made on a snapshot and stays valid: commits only add younger events, so what was too old or
//! too much still is.

use std::sync::Arc;

use super::{
    failure::{Failure, outcome},
    pool::{Pool, Pooled},
    read::{self, number, sequence},
};
use crate::{
    blob::Trimmed,
    commit::CommitError,
    error::LogError,
    names::{Sequence, StreamId, Version},
    store::RetentionPolicy,
};

/// How many streams are read in one statement.
const SCAN_STREAMS: i64 = 256;
/// How many events one transaction drops at most, while commits to that stream wait.
const DROP_EVENTS: i64 = 2048;

/// Some streams of a kind, and up to where to drop their events. A young event keeps those after it, whatever
/// their times.
const CUTS: &str = "
    SELECT number, id, greatest(too_old, too_many), first_sequence
    FROM streams, LATERAL (
        SELECT CASE WHEN $3::bigint IS NULL THEN 0 ELSE coalesce((
            SELECT sequence - 1 FROM events
            WHERE stream = number
                AND at_ms >= (extract(epoch FROM statement_timestamp()) * 1000)::bigint - $3
            ORDER BY sequence LIMIT 1), last_sequence) END AS too_old
    ) AS by_age, LATERAL (
        SELECT CASE WHEN $4::bigint IS NULL THEN 0 ELSE coalesce((
            SELECT sequence FROM (
                SELECT sequence, sum(octet_length(body)) OVER (
                    ORDER BY sequence DESC ROWS UNBOUNDED PRECEDING) AS bytes
                FROM events WHERE stream = number) AS newest
            WHERE bytes > $4 ORDER BY sequence DESC LIMIT 1), 0) END AS too_many
    ) AS by_bytes
    WHERE kind = $1 AND id > $2 ORDER BY id LIMIT $5";

/// Drop the events of a stream up to a sequence number, if it still has this kind.
struct Cut {
    number: i64,
    stream: StreamId,
    up_to: i64,
}

pub(super) async fn trim(
    pool: &Arc<Pool>,
    kind: &str,
    policy: RetentionPolicy,
) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
    let mut all = Vec::new();
    let mut place = Some(String::new());
    while let Some(after) = place {
        let (cuts, next) = pool
            .read(|connection| cuts(connection, kind, policy, &after))
            .await?;
        for cut in cuts {
            let mut trimmed: Option<Trimmed> = None;
            while let Some(step) = pool.write(|connection| drop_some(connection, kind, &cut)).await? {
                let events = step.events + trimmed.map_or(0, |before| before.events);
                trimmed = Some(Trimmed { events, ..step });
            }
            all.extend(trimmed.map(|trimmed| (cut.stream, trimmed)));
        }
        place = next;
    }
    Ok(all)
}

async fn cuts(
    connection: Pooled,
    kind: &str,
    policy: RetentionPolicy,
    after: &str,
) -> Result<(Vec<Cut>, Option<String>), Failure> {
    let max_age_ms = policy
        .max_age
        .map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2));
    let max_bytes = policy.max_bytes_per_stream.map(number);
    let rows = connection
        .client
        .query(CUTS, &[&kind, &after, &max_age_ms, &max_bytes, &SCAN_STREAMS])
        .await?;
    let mut cuts = Vec::new();
    for row in &rows {
        let (up_to, first): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
        if up_to >= first {
            cuts.push(Cut {
                number: row.try_get(0)?,
                stream: read::stream(row.try_get(1)?)?,
                up_to,
            });
        }
    }
    let is_full = rows.len() as i64 == SCAN_STREAMS;
    let last = rows.last().filter(|_| is_full).map(|row| row.try_get(1));
    Ok((cuts, last.transpose()?))
}

/// Drops some of the events of a cut. `None` if there are none left.
async fn drop_some(mut connection: Pooled, kind: &str, cut: &Cut) -> Result<Option<Trimmed>, Failure> {
    let advance = "
        UPDATE streams SET first_sequence = least($3 + 1, first_sequence + $4)
        WHERE number = $1 AND kind = $2 AND first_sequence <= $3 RETURNING first_sequence";
    connection.enter_transaction();
    connection.batch("BEGIN").await?;
    let advanced = connection
        .client
        .query_opt(advance, &[&cut.number, &kind, &cut.up_to, &DROP_EVENTS])
        .await?;
    let events = drop_before_first(connection, cut.number).await?;
    let Some(row) = advanced else { return Ok(None) };
    Ok(Some(Trimmed {
        events,
        first: sequence(row.try_get(0)?)?,
    }))
}

/// Drops the events before the first one of a stream, and ends the transaction that advanced it.
async fn drop_before_first<E>(mut connection: Pooled, number: i64) -> Result<u64, Failure<E>> {
    let drop_events = "
        DELETE FROM events USING streams
        WHERE number = $1 AND stream = number AND sequence < first_sequence";
    let drop_references = "
        DELETE FROM blob_references USING streams
        WHERE number = $1 AND stream = number AND sequence > 0 AND sequence < first_sequence";
    let client = &connection.client;
    let events = client.execute(drop_events, &[&number]).await?;
    client.execute(drop_references, &[&number]).await?;
    let ended = connection.batch("COMMIT").await;
    outcome([], ended)?;
    connection.left_transaction();
    Ok(events)
}

/// Drops the events of one stream up to a sequence number, as long as it is at the version that was seen.
pub(super) async fn drop_events(
    pool: &Arc<Pool>,
    stream: &StreamId,
    up_to: Sequence,
    seen: Version,
) -> Result<u64, CommitError> {
    let mut events = 0;
    loop {
        let step = pool.write(|connection| drop_some_events(connection, stream, up_to, seen));
        let Some(dropped) = step.await? else {
            return Ok(events);
        };
        events += dropped;
    }
}

async fn drop_some_events(
    mut connection: Pooled,
    stream: &StreamId,
    up_to: Sequence,
    seen: Version,
) -> Result<Option<u64>, Failure<CommitError>> {
    let look = "SELECT number, version, first_sequence FROM streams WHERE id = $1 FOR UPDATE";
    let advance = "
        UPDATE streams SET first_sequence = least($2::bigint + 1, first_sequence + $3, last_sequence + 1) WHERE number = $1";
    connection.enter_transaction();
    connection.batch("BEGIN").await?;
    let found = connection.client.query_opt(look, &[&stream.as_str()]).await?;
    let (stream_number, version, first) = match &found {
        Some(row) => (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
        None => (0_i64, number(Version::NONE.get()), i64::MAX),
    };
    if version != number(seen.get()) {
        let actual = read::head(&connection, stream).await;
        connection.roll_back().await;
        return Err(Failure::Refused(CommitError::Conflict {
            stream: stream.clone(),
            actual: actual?.map(Box::new),
        }));
    }
    let up_to = number(up_to.get());
    if first > up_to {
        connection.roll_back().await;
        return Ok(None);
    }
    let client = &connection.client;
    client
        .execute(advance, &[&stream_number, &up_to, &DROP_EVENTS])
        .await?;
    let dropped = drop_before_first(connection, stream_number).await?;
    Ok((dropped > 0).then_some(dropped))
}
