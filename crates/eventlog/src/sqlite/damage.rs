//! Reads what is still readable of a damaged file.
//!
//! SQLite stops a list at the first page that makes no sense. Here the names come from an index, which is another
//! part of the file, and each row is read on its own. So one bad page costs only the rows on it.

use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::heads::{HEAD_COLUMNS, head_of_row};
use crate::{
    commit::StoredHead,
    quarantine::Quarantine,
    store::{HeadsOrder, HeadsQuery, RecentlyChangedQuery},
};

/// Whether an error is about the content of the file, not about the request or the machine.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    match error {
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..) => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        ),
    }
}

/// A page of heads without those that can't be read, which are quarantined. It is only shorter than requested if
/// there are no more heads.
pub(super) fn heads(
    connection: &Connection,
    query: &HeadsQuery,
    quarantine: &Quarantine,
) -> rusqlite::Result<Vec<StoredHead>> {
    let (wanted, mut found) = (query.limit as usize, Vec::new());
    let mut after = query.place().into_owned();
    while found.len() < wanted {
        let names = names(connection, query, &after)?;
        let Some((_, last)) = names.last() else {
            break;
        };
        after.clone_from(last);
        for (number, name) in names {
            found.extend(head(connection, (number, &name), &query.kind, quarantine)?);
            if found.len() == wanted {
                break;
            }
        }
    }
    Ok(found)
}

/// The most recently changed heads of a kind, without those that can't be read.
pub(super) fn recently_changed(
    connection: &Connection,
    query: &RecentlyChangedQuery,
    quarantine: &Quarantine,
) -> rusqlite::Result<Vec<StoredHead>> {
    let names = HeadsQuery {
        kind: query.kind.clone(),
        status: None,
        order: HeadsOrder::NewestFirst,
        after: None,
        limit: query.among,
    };
    let mut found = heads(connection, &names, quarantine)?;
    found.sort_by_key(|stored| std::cmp::Reverse(stored.version));
    found.truncate(query.limit as usize);
    Ok(found)
}

/// Numbers and names of streams, from an index alone, or from the table if the index is damaged.
fn names(connection: &Connection, query: &HeadsQuery, after: &str) -> rusqlite::Result<Vec<(i64, String)>> {
    let index = match &query.status {
        Some(_) => "INDEXED BY streams_by_kind",
        None => "INDEXED BY streams_by_name",
    };
    match names_by(connection, query, after, index) {
        Err(error) if is_damage(&error) => names_by(connection, query, after, "NOT INDEXED"),
        names => names,
    }
}

fn names_by(
    connection: &Connection,
    query: &HeadsQuery,
    after: &str,
    index: &str,
) -> rusqlite::Result<Vec<(i64, String)>> {
    let with_status = match &query.status {
        Some(_) => "AND status = ?2",
        None => "AND ?2 IS NULL",
    };
    let in_order = match query.order {
        HeadsOrder::OldestFirst => "id > ?3 ORDER BY id",
        HeadsOrder::NewestFirst => "id < ?3 ORDER BY id DESC",
    };
    let sql = format!(
        "SELECT number, CAST(id AS BLOB) FROM streams {index}
         WHERE kind = ?1 {with_status} AND {in_order} LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(
        params![&*query.kind, query.status.as_deref(), after, query.limit],
        |row| {
            let name: Vec<u8> = row.get(1)?;
            Ok((row.get(0)?, String::from_utf8_lossy(&name).into_owned()))
        },
    )?;
    rows.collect()
}

fn head(
    connection: &Connection,
    (number, name): (i64, &str),
    kind: &str,
    quarantine: &Quarantine,
) -> rusqlite::Result<Option<StoredHead>> {
    let sql = format!("SELECT {HEAD_COLUMNS} FROM streams WHERE number = ?1");
    let read = connection
        .prepare_cached(&sql)?
        .query_row([number], head_of_row)
        .optional();
    match read {
        Err(error) if is_damage(&error) => {
            quarantine.note(name, kind, &error);
            Ok(None)
        }
        read => read,
    }
}
