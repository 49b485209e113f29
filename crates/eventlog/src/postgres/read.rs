//! Reads heads and events.

use std::sync::Arc;

use tokio_postgres::Row;

use super::{
    connection::Connection,
    failure::{Failure, Malformed},
    pool::Pooled,
};
use crate::{
    blob::BlobId,
    commit::{Event, Head, StoredHead},
    hub::WINDOW_BYTES,
    names::{Incarnation, Sequence, StreamId, Version},
    store::{HeadsOrder, HeadsQuery, Page, RecentlyChangedQuery},
};

/// How many of the newest events of a stream are fetched when another process has written it. Tails that are
/// further behind read for themselves.
const NEWEST_EVENTS: i64 = 256;

pub(super) async fn head<E>(
    connection: &Connection,
    stream: &StreamId,
) -> Result<Option<StoredHead>, Failure<E>> {
    let row = connection
        .query_opt(&connection.statements.head, [&stream.as_str()])
        .await?;
    row.as_ref().map(head_of_row).transpose()
}

pub(super) async fn heads(connection: Pooled, query: &HeadsQuery) -> Result<Vec<StoredHead>, Failure> {
    let place = query.place();
    let (kind, place, limit) = (&*query.kind, &*place, i64::from(query.limit));
    let statements = &connection.statements;
    let (by_kind, by_status) = match query.order {
        HeadsOrder::OldestFirst => (&statements.oldest_by_kind, &statements.oldest_by_status),
        HeadsOrder::NewestFirst => (&statements.newest_by_kind, &statements.newest_by_status),
    };
    let rows = match query.status.as_deref() {
        None => connection.query(by_kind, [&kind, &place, &limit]).await?,
        Some(status) => {
            connection
                .query(by_status, [&kind, &place, &limit, &status])
                .await?
        }
    };
    rows.iter().map(head_of_row).collect()
}

pub(super) async fn recently_changed(
    connection: Pooled,
    query: &RecentlyChangedQuery,
) -> Result<Vec<StoredHead>, Failure> {
    let (kind, among, limit) = (&*query.kind, i64::from(query.among), i64::from(query.limit));
    let rows = connection
        .query(&connection.statements.recently_changed, [&kind, &among, &limit])
        .await?;
    rows.iter().map(head_of_row).collect()
}

pub(super) async fn read(
    connection: Pooled,
    stream: &StreamId,
    after: Sequence,
    limit: u32,
) -> Result<Page, Failure> {
    let (id, after, limit) = (stream.as_str(), number(after.get()), i64::from(limit));
    let rows = connection
        .query(&connection.statements.read, [&id, &after, &limit])
        .await?;
    let Some(bounds) = rows.first() else {
        return Ok(Page::default());
    };
    let mut page = Page {
        first: sequence(bounds.try_get(0)?)?,
        last: sequence(bounds.try_get(1)?)?,
        incarnation: incarnation(bounds.try_get(2)?)?,
        events: Vec::with_capacity(rows.len()),
    };
    for row in &rows {
        // A stream without events after that number has one row, which only has the bounds.
        if row.try_get::<_, Option<i64>>(3)?.is_some() {
            page.events.push(event_of_row(row, 3)?);
        }
    }
    Ok(page)
}

/// The newest position that the tails of a stream were told.
pub(super) struct KnownPosition {
    pub(super) stream: StreamId,
    pub(super) incarnation: Incarnation,
    pub(super) last: Sequence,
}

/// The current position of a stream, and its newest events, which may be none.
pub(super) struct CurrentPosition {
    pub(super) stream: StreamId,
    pub(super) incarnation: Incarnation,
    pub(super) last: Sequence,
    pub(super) newest: Vec<Arc<Event>>,
}

/// The positions of some streams, each with its newest events after a position, as many as a window of the hub
/// holds. Streams that don't exist are left out.
pub(super) async fn newest(
    connection: Pooled,
    told: &[KnownPosition],
) -> Result<Vec<CurrentPosition>, Failure> {
    let ids: Vec<&str> = told.iter().map(|told| told.stream.as_str()).collect();
    let lives: Vec<i64> = told.iter().map(|told| number(told.incarnation.get())).collect();
    let after: Vec<i64> = told.iter().map(|told| number(told.last.get())).collect();
    let (events, bytes) = (NEWEST_EVENTS, number(WINDOW_BYTES as u64));
    let rows = connection
        .query(
            &connection.statements.newest,
            [&ids, &lives, &after, &events, &bytes],
        )
        .await?;
    let mut found: Vec<CurrentPosition> = Vec::new();
    for row in &rows {
        let of = stream(row.try_get(0)?)?;
        if found.last().is_none_or(|moved| moved.stream != of) {
            found.push(CurrentPosition {
                stream: of,
                incarnation: incarnation(row.try_get(1)?)?,
                last: sequence(row.try_get(2)?)?,
                newest: Vec::new(),
            });
        }
        if let (Some(moved), Some(_)) = (found.last_mut(), row.try_get::<_, Option<i64>>(3)?) {
            moved.newest.push(Arc::new(event_of_row(row, 3)?));
        }
    }
    Ok(found)
}

/// An event from four columns.
pub(super) fn event_of_row<E>(row: &Row, first: usize) -> Result<Event, Failure<E>> {
    Ok(Event {
        sequence: sequence(row.try_get(first)?)?,
        at_ms: row.try_get(first + 1)?,
        kind: row.try_get::<_, &str>(first + 2)?.into(),
        body: row.try_get::<_, &[u8]>(first + 3)?.into(),
    })
}

/// A head from a row of `head_columns!`.
pub(super) fn head_of_row<E>(row: &Row) -> Result<StoredHead, Failure<E>> {
    let blobs: Vec<&[u8]> = row.try_get(6)?;
    let head = Head {
        kind: row.try_get::<_, &str>(1)?.into(),
        status: row.try_get::<_, &str>(2)?.into(),
        body: row.try_get::<_, &[u8]>(5)?.into(),
        blobs: blobs.into_iter().map(blob).collect::<Result<_, _>>()?,
    };
    Ok(StoredHead {
        stream: stream(row.try_get(0)?)?,
        version: Version::from_u64(unsigned(row.try_get(3)?)?),
        last_sequence: sequence(row.try_get(4)?)?,
        head,
    })
}

/// Converts a number for the database. One that is too large for it is larger than all that exist.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> Result<u64, Malformed> {
    u64::try_from(number).map_err(|_| Malformed("a number from 0 up"))
}

pub(super) fn sequence(number: i64) -> Result<Sequence, Malformed> {
    unsigned(number).map(Sequence::from_u64)
}

pub(super) fn incarnation(number: i64) -> Result<Incarnation, Malformed> {
    unsigned(number).map(Incarnation::from_u64)
}

pub(super) fn stream(id: &str) -> Result<StreamId, Malformed> {
    StreamId::new(id).map_err(|_| Malformed("the name of a stream"))
}

pub(super) fn blob(bytes: &[u8]) -> Result<BlobId, Malformed> {
    let bytes = bytes.try_into().map_err(|_| Malformed("the address of a blob"))?;
    Ok(BlobId::from_bytes(bytes))
}
