//! The tables, as numbered steps. Never change a released step; add a new one after it.
//!
//! Names are compared byte by byte (`COLLATE "C"`), so that lists have the same order on every engine, whatever
//! the locale of the server.

use std::{array, sync::Arc, time::Instant};

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::{failure::Malformed, session::SessionId};
use crate::{
    error::LogError,
    time::{ServerTimeSample, UnixMs},
};

/// Each entry migrates the schema from its index to the next number.
const STEPS: &[&str] = &[
    r#"
    -- Gives out versions, the tokens of leases and the numbers of streams: none is ever used twice.
    CREATE SEQUENCE versions AS bigint;

    CREATE TABLE streams (
        number         bigint PRIMARY KEY,
        id             text COLLATE "C" NOT NULL CONSTRAINT streams_id UNIQUE,
        kind           text COLLATE "C" NOT NULL,
        status         text COLLATE "C" NOT NULL,
        version        bigint NOT NULL,
        first_sequence bigint NOT NULL,
        last_sequence  bigint NOT NULL,
        body           bytea NOT NULL
    ) WITH (fillfactor = 80);
    CREATE INDEX streams_by_kind ON streams (kind, id);
    CREATE INDEX streams_by_status ON streams (kind, status, id);

    CREATE TABLE events (
        stream   bigint NOT NULL,
        sequence bigint NOT NULL,
        at_ms    bigint NOT NULL,
        kind     text COLLATE "C" NOT NULL,
        body     bytea NOT NULL,
        PRIMARY KEY (stream, sequence)
    );

    CREATE TABLE leases (
        key        text COLLATE "C" PRIMARY KEY,
        owner      text COLLATE "C" NOT NULL,
        token      bigint NOT NULL,
        expires_at timestamptz NOT NULL
    ) WITH (fillfactor = 50);

    CREATE TABLE uploads (
        number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        expires_at timestamptz NOT NULL
    );

    -- A blob has the chunks of the upload that brought it.
    CREATE TABLE blobs (
        id           bytea PRIMARY KEY,
        upload       bigint NOT NULL UNIQUE,
        size_bytes   bigint NOT NULL,
        stored_bytes bigint NOT NULL,
        chunks       bigint NOT NULL,
        pinned_until timestamptz NOT NULL
    );
    CREATE TABLE chunks (
        upload  bigint NOT NULL,
        number  bigint NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (upload, number)
    );
    -- Chunks come compressed.
    ALTER TABLE chunks ALTER COLUMN content SET STORAGE EXTERNAL;

    -- What refers to which blob. The head of a stream stands at sequence 0.
    CREATE TABLE blob_references (
        stream   bigint NOT NULL,
        sequence bigint NOT NULL,
        position bigint NOT NULL,
        blob     bytea NOT NULL,
        PRIMARY KEY (stream, sequence, position)
    );
    CREATE INDEX blob_references_by_blob ON blob_references (blob);
"#,
    r#"
    -- Streams that are gone, and whose events are still to be dropped.
    CREATE TABLE removed_streams (
        number bigint PRIMARY KEY
    );
"#,
    include_str!("write_commit.sql"),
];

/// The newest schema that this version supports.
pub(super) const NEWEST: i64 = STEPS.len() as i64;
/// The oldest supported server, as a Postgres version number.
const OLDEST_SERVER: i32 = 130_000;

pub(super) struct FirstLook {
    /// The schema of the log; 0 if there is none yet.
    pub(super) found: i64,
    /// The sessions that answered, one per statement.
    pub(super) sessions: [SessionId; 2],
    pub(super) time: ServerTimeSample,
}

/// Looks at a database in two round trips, and rejects a server that can't store a log.
pub(super) async fn look(client: &Client, schema: &str) -> Result<FirstLook, LogError> {
    // The name of a schema is an identifier, so it can be part of a statement.
    let sql = format!(
        "SELECT {}, current_setting('server_encoding'), current_setting('server_version_num'),
             EXISTS (SELECT FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'meta')",
        SessionId::COLUMN
    );
    let [session, encoding, version, has_meta] = simple_row(client, &sql).await?;
    if encoding != "UTF8" {
        return Err(LogError::Engine(Arc::new(Unsuitable::Encoding)));
    }
    if version.parse::<i32>().map_err(|_| Malformed("a version"))? < OLDEST_SERVER {
        return Err(LogError::Engine(Arc::new(Unsuitable::Version)));
    }
    // A second statement even if there is nothing to ask: a pooler may let another session answer it.
    let found = if has_meta == "t" {
        format!("(SELECT value FROM \"{schema}\".meta WHERE key = 'schema')")
    } else {
        "0".to_owned()
    };
    let columns = format!("{}, {found}", SessionId::COLUMN);
    let ([second, found], time) = row_and_time(client, &columns).await?;
    Ok(FirstLook {
        found: found.parse().map_err(|_| Malformed("a log"))?,
        sessions: [SessionId(session), SessionId(second)],
        time,
    })
}

pub(super) async fn time(client: &Client) -> Result<ServerTimeSample, LogError> {
    let ([_], time) = row_and_time(client, "1").await?;
    Ok(time)
}

/// Some values, together with the time of the server.
async fn row_and_time<const N: usize>(
    client: &Client,
    columns: &str,
) -> Result<([String; N], ServerTimeSample), LogError> {
    let sql = format!("SELECT {columns}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    let asked = Instant::now();
    let row = last_row(client, &sql).await?;
    let answered = Instant::now();
    let ms = row.get(N).and_then(|ms| ms.parse().ok());
    let ms = UnixMs(ms.ok_or(Malformed("a time"))?);
    Ok((values(&row), ServerTimeSample { ms, asked, answered }))
}

/// The last row of statements without parameters, in one round trip. A missing value is an empty text.
async fn simple_row<const N: usize>(client: &Client, sql: &str) -> Result<[String; N], LogError> {
    Ok(values(&last_row(client, sql).await?))
}

async fn last_row(client: &Client, sql: &str) -> Result<SimpleQueryRow, LogError> {
    let answer = client.simple_query(sql).await?;
    let row = answer.into_iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(row.ok_or(Malformed("a log"))?)
}

fn values<const N: usize>(row: &SimpleQueryRow) -> [String; N] {
    array::from_fn(|at| row.get(at).unwrap_or_default().to_owned())
}

#[derive(Debug, thiserror::Error)]
enum Unsuitable {
    #[error("the database is not encoded in UTF8; make one with ENCODING 'UTF8'")]
    Encoding,
    #[error("the server is older than Postgres 13")]
    Version,
}

/// Migrates a database to the newest schema, in a few round trips. If several daemons start at once, one migrates
/// and the others wait. It is one transaction, so a crash leaves the old schema. Returns the resulting schema: a
/// newer daemon may have been faster.
pub(super) async fn migrate(client: &Client, schema: &str) -> Result<i64, LogError> {
    // Checked again under the lock. The catalog is read as a table, and so in its current state. The functions
    // that look up a name may answer from a cache of the session, which misses a table that was just created.
    let sql = format!(
        "BEGIN;
         SELECT pg_advisory_xact_lock(hashtextextended('tidelock schema {schema}', 0));
         SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = '{schema}' AND tablename = 'meta'),
             EXISTS (SELECT FROM pg_namespace WHERE nspname = '{schema}')"
    );
    let [has_meta, has_schema] = simple_row(client, &sql).await?.map(|answer| answer == "t");
    let found = if has_meta {
        let sql = format!("SELECT value FROM \"{schema}\".meta WHERE key = 'schema'");
        let [found] = simple_row(client, &sql).await?;
        found.parse().map_err(|_| Malformed("a log"))?
    } else {
        0
    };
    let mut script = String::new();
    // Asked first, because `CREATE SCHEMA IF NOT EXISTS` needs a privilege that the owner may not have granted.
    if !has_schema {
        script += &format!("CREATE SCHEMA \"{schema}\";");
    }
    script += &format!("SET LOCAL search_path TO \"{schema}\";");
    if !has_meta {
        script += "CREATE TABLE meta (key text PRIMARY KEY, value bigint NOT NULL);
                   INSERT INTO meta (key, value) VALUES ('schema', 0);";
    }
    for (_, step) in (1..).zip(STEPS).filter(|(number, _)| found < *number) {
        script += step;
    }
    let found = found.max(NEWEST);
    script += &format!("UPDATE meta SET value = {found} WHERE key = 'schema'; COMMIT");
    client.batch_execute(&script).await?;
    Ok(found)
}
