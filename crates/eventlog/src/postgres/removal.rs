//! Removes streams: their heads at once, which makes them invisible, and their events step by step afterwards.
//!
//! The number of a removed stream stays in a table until nothing of it is left, and numbers are never reused. So
//! whichever daemon sweeps, sooner or later, drops all of it and nothing else.

use std::{collections::HashMap, sync::Arc};

use tokio_postgres::Row;

use super::{
    failure::{Failure, outcome},
    listener::{self, Hint},
    pool::{Pool, Pooled},
    read::{self, number, unsigned},
};
use crate::{
    commit::CommitError,
    error::LogError,
    hub::{Change, ChangeKind},
    names::{StreamId, Version},
};

/// How many streams one step sweeps: few enough to be short.
const SWEEP_STREAMS: i64 = 64;
/// How many events one step drops at most.
const SWEEP_EVENTS: i64 = 2048;

/// A stream that is at the version that was seen.
struct FoundStream {
    number: i64,
    version: Version,
}

/// Removes the heads of streams, if all are at the version that was seen. They are locked in the same way as by a
/// commit.
pub(super) async fn remove(
    mut connection: Pooled,
    streams: &[(StreamId, Version)],
) -> Result<Vec<Change>, Failure<CommitError>> {
    connection.enter_transaction();
    let found = match look(&connection, streams).await {
        Ok(found) => found,
        Err(failed) => {
            connection.roll_back().await;
            return Err(failed);
        }
    };
    let version = |stream: &StreamId| {
        let stream = found.get(stream.as_str());
        stream.map_or(Version::NONE, |stream| stream.version)
    };
    if let Some((stale, _)) = streams.iter().find(|(stream, seen)| version(stream) != *seen) {
        let actual = read::head(&connection, stale).await;
        connection.roll_back().await;
        return Err(Failure::Refused(CommitError::Conflict {
            stream: stale.clone(),
            actual: actual?.map(Box::new),
        }));
    }
    let (mut numbers, mut changes, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    for (stream, _) in streams {
        let Some(there) = found.get(stream.as_str()) else {
            continue;
        };
        let incarnation = read::incarnation(there.number)?;
        numbers.push(there.number);
        hints.push(Hint::removed(stream, incarnation));
        changes.push(Change {
            stream: stream.clone(),
            incarnation,
            kind: ChangeKind::Removed,
        });
    }
    let (removed, ended, ()) = tokio::join!(
        biased;
        connection.execute(&connection.statements.remove_streams, [&numbers]),
        connection.batch("COMMIT"),
        listener::send_hints(&connection, connection.schema(), &hints),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    outcome([removed.map(drop)], ended)?;
    Ok(changes)
}

async fn look(
    connection: &Pooled,
    streams: &[(StreamId, Version)],
) -> Result<HashMap<String, FoundStream>, Failure<CommitError>> {
    let ids: Vec<&str> = streams.iter().map(|(stream, _)| stream.as_str()).collect();
    let seen: Vec<i64> = streams.iter().map(|(_, seen)| number(seen.get())).collect();
    let ((), rows) = tokio::try_join!(
        biased;
        connection.batch("BEGIN"),
        connection.query(&connection.statements.lock_streams, [&ids, &seen]),
    )?;
    let found = |row: &Row| {
        let stream = FoundStream {
            number: row.try_get(1)?,
            version: Version::from_u64(unsigned(row.try_get(2)?)?),
        };
        Ok((row.try_get(0)?, stream))
    };
    rows.iter().map(found).collect()
}

/// Whether a sweeping step was the last one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Swept {
    More,
    All,
}

/// Drops what is left of removed streams.
pub(super) async fn sweep(pool: &Arc<Pool>) -> Result<(), LogError> {
    while pool.write(sweep_some).await? == Swept::More {}
    Ok(())
}

/// Drops some of it. What other daemons are sweeping is left to them.
async fn sweep_some(mut connection: Pooled) -> Result<Swept, Failure> {
    let take = "SELECT number FROM removed_streams ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED";
    let drop_events = "
        DELETE FROM events USING (
            SELECT stream, sequence FROM events WHERE stream = ANY($1)
            ORDER BY stream, sequence LIMIT $2
        ) AS oldest
        WHERE events.stream = oldest.stream AND events.sequence = oldest.sequence";
    let drop_references = "DELETE FROM blob_references WHERE stream = ANY($1)";
    let finish = "DELETE FROM removed_streams WHERE number = ANY($1)";
    connection.enter_transaction();
    let client = &connection.client;
    // If this is lost, it is swept again.
    connection
        .batch("BEGIN; SET LOCAL synchronous_commit = off")
        .await?;
    let taken = client.query(take, &[&SWEEP_STREAMS]).await?;
    let numbers: Vec<i64> = taken.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let dropped = client.execute(drop_events, &[&numbers, &SWEEP_EVENTS]).await?;
    let all_dropped = dropped < SWEEP_EVENTS.unsigned_abs();
    if all_dropped {
        client.execute(drop_references, &[&numbers]).await?;
        client.execute(finish, &[&numbers]).await?;
    }
    connection.batch("COMMIT").await?;
    connection.left_transaction();
    let all_taken = (numbers.len() as u64) < SWEEP_STREAMS.unsigned_abs();
    Ok(if all_dropped && all_taken {
        Swept::All
    } else {
        Swept::More
    })
}
