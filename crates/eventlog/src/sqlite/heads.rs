//! Heads, for the writer and the readers alike.

use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};

use crate::{
    blob::BlobId,
    commit::{Head, StoredHead},
    names::{Sequence, StreamId, Version},
    store::{HeadsOrder, HeadsQuery, RecentlyChangedQuery},
};

/// The columns that [`head_of_row`] needs. The blobs come as one text, so that a single statement sees head and
/// blobs in one snapshot.
pub(super) const HEAD_COLUMNS: &str = "id, kind, status, version, last_sequence, body, (
    SELECT group_concat(lower(hex(blobs.id)), ' ' ORDER BY position)
    FROM blob_references JOIN blobs ON blobs.number = blob
    WHERE stream = streams.number AND sequence = 0)";

pub(super) fn head(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Option<StoredHead>> {
    let sql = format!("SELECT {HEAD_COLUMNS} FROM streams WHERE streams.id = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([stream.as_str()], head_of_row)
        .optional()
}

/// A page of heads of a kind.
pub(super) fn heads(connection: &Connection, query: &HeadsQuery) -> rusqlite::Result<Vec<StoredHead>> {
    let mut statement = connection.prepare_cached(&list(query))?;
    let after = query.place();
    let rows = statement.query_map(
        params![&*query.kind, query.status.as_deref(), &*after, query.limit],
        head_of_row,
    )?;
    rows.collect()
}

/// The most recently changed heads of a kind, among the last ones by name.
pub(super) fn recently_changed(
    connection: &Connection,
    query: &RecentlyChangedQuery,
) -> rusqlite::Result<Vec<StoredHead>> {
    let sql = format!(
        "SELECT {HEAD_COLUMNS} FROM streams WHERE number IN (
            SELECT number FROM (
                SELECT number, version FROM streams WHERE kind = ?1 ORDER BY id DESC LIMIT ?2
            ) ORDER BY version DESC LIMIT ?3
        ) ORDER BY version DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![&*query.kind, query.among, query.limit], head_of_row)?;
    rows.collect()
}

/// The statement for a list. Each has an index, so the cost depends only on the size of the page.
pub(super) fn list(query: &HeadsQuery) -> String {
    let with_status = if query.status.is_some() {
        "AND status = ?2"
    } else {
        "AND ?2 IS NULL"
    };
    let in_order = match query.order {
        HeadsOrder::OldestFirst => "streams.id > ?3 ORDER BY streams.id",
        HeadsOrder::NewestFirst => "streams.id < ?3 ORDER BY streams.id DESC",
    };
    format!("SELECT {HEAD_COLUMNS} FROM streams WHERE kind = ?1 {with_status} AND {in_order} LIMIT ?4")
}

/// A head from a row that starts with [`HEAD_COLUMNS`].
pub(super) fn head_of_row(row: &Row<'_>) -> rusqlite::Result<StoredHead> {
    let id: String = row.get(0)?;
    let stream = StreamId::new(&id)
        .map_err(|bad| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(bad)))?;
    let head = Head {
        kind: row.get(1)?,
        status: row.get(2)?,
        body: row.get::<_, Vec<u8>>(5)?.into(),
        blobs: blobs_of_column(row, 6)?,
    };
    Ok(StoredHead {
        stream,
        version: Version::from_u64(row.get(3)?),
        last_sequence: Sequence::from_u64(row.get(4)?),
        head,
    })
}

/// The blobs that were aggregated into one text.
pub(super) fn blobs_of_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<BlobId>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(Vec::new());
    };
    text.split(' ')
        .map(|id| {
            id.parse()
                .map_err(|bad| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(bad)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sqlite::schema;

    /// A page is read from an index, in its order, from its position on, so the cost depends only on its size.
    #[test]
    fn nothing_is_sorted_for_a_list() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        for (order, status, expected) in [
            (HeadsOrder::OldestFirst, None, "streams_by_name (kind=? AND id>?)"),
            (HeadsOrder::NewestFirst, None, "streams_by_name (kind=? AND id<?)"),
            (
                HeadsOrder::OldestFirst,
                Some("open"),
                "streams_by_kind (kind=? AND status=? AND id>?)",
            ),
            (
                HeadsOrder::NewestFirst,
                Some("open"),
                "streams_by_kind (kind=? AND status=? AND id<?)",
            ),
        ] {
            let query = HeadsQuery {
                kind: Arc::from("job"),
                status: status.map(Arc::from),
                order,
                after: None,
                limit: 10,
            };
            let sql = format!("EXPLAIN QUERY PLAN {}", list(&query));
            let mut explain = connection.prepare(&sql).unwrap();
            let rows = explain.query_map([None::<&str>; 4], |row| row.get(3)).unwrap();
            let plan: Vec<String> = rows.map(Result::unwrap).collect();
            assert_eq!(plan[0], format!("SEARCH streams USING INDEX {expected}"));
            assert!(!plan.iter().any(|line| line.contains("FOR ORDER BY")), "{plan:?}");
        }
    }
}
