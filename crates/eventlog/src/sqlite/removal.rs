//! Removes streams: their heads at once, which makes them invisible, and their events step by step afterwards.
//!
//! The number of a removed stream stays in a table until nothing of it is left, and numbers are never reused. So
//! after a crash no event is forgotten, and none is found by a later stream of the same name.

use rusqlite::Connection;

use super::{
    apply::{check_version, incarnation},
    retention::{Budget, drop_oldest},
    stream_cache::StreamCache,
};
use crate::{
    commit::CommitError,
    error::LogError,
    hub::{Change, ChangeKind},
    names::{Sequence, StreamId, Version},
};

/// How many streams one step looks at.
const SWEEP_STREAMS: u32 = 256;

/// The last position that an event can have.
const LAST: Sequence = Sequence::from_u64(i64::MAX as u64);

/// Whether a sweeping step was the last one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Swept {
    More,
    All,
}

/// Removes the heads of streams, if all are at the version that was seen.
pub(super) fn remove(
    connection: &Connection,
    cache: &mut StreamCache,
    streams: &[(StreamId, Version)],
) -> Result<Vec<Change>, CommitError> {
    let mut found = Vec::with_capacity(streams.len());
    for (stream, expected) in streams {
        // A stream that doesn't exist, as the caller expected, needs nothing.
        let there = check_version(connection, cache, stream, *expected)?;
        found.extend(there.map(|there| (stream, there.number)));
    }
    let mut changes = Vec::with_capacity(found.len());
    for (stream, number) in found {
        forget(connection, number).map_err(LogError::from)?;
        cache.forget(stream);
        changes.push(Change {
            stream: stream.clone(),
            incarnation: incarnation(number),
            kind: ChangeKind::Removed,
        });
    }
    Ok(changes)
}

fn forget(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM streams WHERE number = ?1")?
        .execute([number])?;
    connection
        .prepare_cached("INSERT INTO removed_streams (number) VALUES (?1)")?
        .execute([number])?;
    Ok(())
}

/// Drops the last rest of a stream: the references of its head.
fn finish(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM blob_references WHERE stream = ?1")?
        .execute([number])?;
    connection
        .prepare_cached("DELETE FROM removed_streams WHERE number = ?1")?
        .execute([number])?;
    Ok(())
}

/// Drops some of what removed streams have left behind, as much as one trimming step does, while commits wait.
pub(super) fn sweep(connection: &Connection) -> Result<Swept, LogError> {
    let mut list =
        connection.prepare_cached("SELECT number FROM removed_streams ORDER BY number LIMIT ?1")?;
    let numbers = list.query_map([SWEEP_STREAMS], |row| row.get(0))?;
    let numbers: Vec<i64> = numbers.collect::<rusqlite::Result<_>>()?;
    let mut budget = Budget::STEP;
    for number in numbers {
        while !budget.is_spent()
            && let Some(dropped) = drop_oldest(connection, number, LAST, budget)?
        {
            budget.spend(&dropped);
        }
        if budget.is_spent() {
            return Ok(Swept::More);
        }
        finish(connection, number)?;
        budget.spend_one();
    }
    let is_done = connection
        .prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM removed_streams)")?
        .query_row([], |row| row.get(0))?;
    Ok(if is_done { Swept::All } else { Swept::More })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kernel::SystemClock;
    use tempfile::TempDir;

    use super::super::{Readers, Sqlite, SqliteOptions, request::Request, retention};
    use crate::{
        commit::{Commit, Head, NewEvent, Write},
        names::{Sequence, StreamId, Version},
        store::{RetentionPolicy, Store},
    };

    fn open(directory: &TempDir) -> Sqlite {
        let path = directory.path().join("log.sqlite3");
        Sqlite::open(&SqliteOptions { path }, SystemClock::shared(), Default::default()).unwrap()
    }

    fn stream() -> StreamId {
        StreamId::new("s").unwrap()
    }

    async fn make(store: &Sqlite, events: usize) -> Version {
        let event = NewEvent {
            kind: Arc::from("output"),
            body: Arc::from(&b"body"[..]),
            blobs: Vec::new(),
        };
        let write = Write {
            stream: stream(),
            expected: Version::NONE,
            head: Some(Head {
                kind: Arc::from("job"),
                status: Arc::from("open"),
                body: Arc::from(&b""[..]),
                blobs: Vec::new(),
            }),
            events: vec![event; events],
        };
        store.commit(Commit::one(write)).await.unwrap()[0].version
    }

    async fn count(store: &Sqlite, table: &str) -> u64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let counted = Readers::run(&store.readers, move |connection| {
            Ok::<_, crate::error::LogError>(connection.query_row(&sql, [], |row| row.get(0))?)
        });
        counted.await.unwrap()
    }

    async fn last(store: &Sqlite) -> u64 {
        let page = store.read(&stream(), Sequence::START, 1000).await.unwrap();
        assert_eq!(page.events.len() as u64, page.last.get());
        page.last.get()
    }

    /// Removes only the heads, as if a crash followed.
    async fn remove_heads(store: &Sqlite, seen: Version) {
        let streams = vec![(stream(), seen)];
        let removed = store.ask(|reply| Request::Remove { streams, reply });
        removed.await.unwrap();
    }

    #[tokio::test]
    async fn what_a_crash_has_left_behind_is_nobodys_and_is_swept() {
        let directory = TempDir::new().unwrap();
        let store = open(&directory);
        let seen = make(&store, 5).await;
        remove_heads(&store, seen).await;
        drop(store);
        let store = open(&directory);
        assert_eq!((count(&store, "events").await, last(&store).await), (5, 0));
        let made = make(&store, 2).await;
        assert!(made > seen);
        assert_eq!((count(&store, "events").await, last(&store).await), (7, 2));
        store.compact().await.unwrap();
        assert_eq!((count(&store, "events").await, last(&store).await), (2, 2));
        assert_eq!(count(&store, "removed_streams").await, 0);
    }

    #[tokio::test]
    async fn a_cut_is_not_made_in_a_stream_that_came_later() {
        let directory = TempDir::new().unwrap();
        let store = open(&directory);
        let seen = make(&store, 5).await;
        let policy = RetentionPolicy {
            max_bytes_per_stream: Some(4),
            max_age: None,
        };
        let decided = Readers::run(&store.readers, move |connection| {
            retention::cuts(connection, &Arc::from("job"), policy, None)
        });
        let (cuts, _) = decided.await.unwrap();
        let cut = cuts[0].clone();
        store.remove(vec![(stream(), seen)]).await.unwrap();
        make(&store, 3).await;
        let trimmed = store.ask(|reply| Request::Trim { cut, reply });
        assert_eq!(trimmed.await.unwrap(), None);
        assert_eq!(last(&store).await, 3);
    }

    /// A file with the first schema has streams that were numbered one by one.
    #[tokio::test]
    async fn streams_of_an_older_file_are_removed_too() {
        let directory = TempDir::new().unwrap();
        drop(open(&directory));
        let connection = rusqlite::Connection::open(directory.path().join("log.sqlite3")).unwrap();
        let downgrade = "
            DROP TABLE removed_streams; DROP INDEX streams_by_name; DROP VIEW all_chunks;
            DROP TABLE shared_chunks; DROP TABLE pieces; PRAGMA user_version = 1;
            INSERT INTO streams VALUES (1, 's', 'job', 'open', 7, 1, 2, x'');
            INSERT INTO streams VALUES (2, 't', 'job', 'open', 9, 1, 0, x'');
            INSERT INTO events VALUES (1, 1, 0, 'output', x''), (1, 2, 0, 'output', x'');
            UPDATE meta SET value = 9";
        connection.execute_batch(downgrade).unwrap();
        drop(connection);
        let store = open(&directory);
        assert_eq!(last(&store).await, 2);
        let removed = store.remove(vec![(stream(), Version::from_u64(7))]).await;
        removed.unwrap();
        assert_eq!(make(&store, 1).await, Version::from_u64(10));
        store.compact().await.unwrap();
        assert_eq!((count(&store, "events").await, last(&store).await), (1, 1));
    }
}
