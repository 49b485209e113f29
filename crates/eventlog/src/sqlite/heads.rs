//! Heads, for the writer and the readers alike.

use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};

use crate::{
    blob::BlobId,
    commit::{Head, StoredHead},
    names::{Sequence, StreamId, Version},
    store::HeadsQuery,
};

/// What [`head_of_row`] needs of a row of `streams`. The blobs come as one text, so that a single statement sees
/// head and blobs of one moment.
pub(super) const HEAD_COLUMNS: &str = "id, kind, status, version, last_sequence, body, (
    SELECT group_concat(lower(hex(blobs.id)), ' ' ORDER BY position)
    FROM blob_references JOIN blobs ON blobs.number = blob
    WHERE stream = streams.number AND sequence = 0)";

/// The head of a stream.
pub(super) fn head(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Option<StoredHead>> {
    let sql = format!("SELECT {HEAD_COLUMNS} FROM streams WHERE streams.id = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([stream.as_str()], head_of_row)
        .optional()
}

/// A page of heads of a kind.
pub(super) fn heads(connection: &Connection, query: &HeadsQuery) -> rusqlite::Result<Vec<StoredHead>> {
    let with_status = if query.status.is_some() {
        "AND status = ?2"
    } else {
        "AND ?2 IS NULL"
    };
    let sql = format!(
        "SELECT {HEAD_COLUMNS} FROM streams
         WHERE kind = ?1 {with_status} AND streams.id > ?3 ORDER BY streams.id LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let after = query.after.as_ref().map_or("", StreamId::as_str);
    let rows = statement.query_map(
        params![&*query.kind, query.status.as_deref(), after, query.limit],
        head_of_row,
    )?;
    rows.collect()
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

/// The blobs that were gathered into one text.
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
