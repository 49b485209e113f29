//! Connections that read, next to the writer and to each other.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::connect;
use crate::{
    commit::Event,
    error::LogError,
    names::{Incarnation, Sequence, StreamId},
    store::Page,
};

/// How many idle connections are kept. More may be open for a moment; they are closed when they are returned.
const IDLE_CONNECTIONS: usize = 4;

/// A pool of connections that read.
pub(super) struct Readers {
    path: PathBuf,
    /// Guards the connections that nobody uses; held to take one or to return it.
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a query on a thread that may block.
    pub(super) async fn run<T: Send + 'static, E: From<LogError> + Send + 'static>(
        readers: &Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let readers = Arc::clone(readers);
        let ran = tokio::task::spawn_blocking(move || {
            let connection = readers.take().map_err(LogError::from)?;
            let found = query(&connection)?;
            readers.give_back(connection);
            Ok(found)
        });
        match ran.await {
            Ok(found) => found,
            Err(failed) => Err(LogError::Engine(Arc::new(failed)).into()),
        }
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connect(&self.path, OpenFlags::empty()), Ok)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Readers")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

pub(super) fn read(
    connection: &Connection,
    stream: &StreamId,
    after: Sequence,
    limit: u32,
) -> rusqlite::Result<Page> {
    // One transaction, so that the bounds and the events come from the same snapshot.
    let transaction = connection.unchecked_transaction()?;
    let bounds = transaction
        .prepare_cached("SELECT number, first_sequence, last_sequence FROM streams WHERE id = ?1")?
        .query_row([stream.as_str()], |row| {
            Ok((row.get::<_, u64>(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((number, first, last)) = bounds else {
        return Ok(Page::default());
    };
    let mut statement = transaction.prepare_cached(
        "SELECT sequence, at_ms, kind, body FROM events
         WHERE stream = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
    )?;
    // A number that is too large for the database is after all events.
    let after = i64::try_from(after.get()).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![number, after, limit], |row| {
        Ok(Event {
            sequence: Sequence::from_u64(row.get(0)?),
            at_ms: row.get(1)?,
            kind: row.get(2)?,
            body: row.get::<_, Vec<u8>>(3)?.into(),
        })
    })?;
    let events = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Page {
        first: Sequence::from_u64(first),
        last: Sequence::from_u64(last),
        events,
        incarnation: Incarnation::from_u64(number),
    })
}
