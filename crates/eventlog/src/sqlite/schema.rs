//! The tables, as numbered steps. Never change a released step; add a new one after it.

use rusqlite::{Connection, TransactionBehavior};

/// Each entry migrates the schema from its index to the next number.
const STEPS: &[&str] = &[
    "
    CREATE TABLE meta (
        key   TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO meta (key, value) VALUES ('version', 0);

    CREATE TABLE streams (
        number         INTEGER PRIMARY KEY,
        id             TEXT NOT NULL UNIQUE,
        kind           TEXT NOT NULL,
        status         TEXT NOT NULL,
        version        INTEGER NOT NULL,
        first_sequence INTEGER NOT NULL,
        last_sequence  INTEGER NOT NULL,
        body           BLOB NOT NULL
    ) STRICT;
    CREATE INDEX streams_by_kind ON streams (kind, status, id);

    CREATE TABLE events (
        stream   INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        at_ms    INTEGER NOT NULL,
        kind     TEXT NOT NULL,
        body     BLOB NOT NULL,
        PRIMARY KEY (stream, sequence)
    ) STRICT, WITHOUT ROWID;

    -- A row without an id is an upload, or what is left of a blob that was collected; only a blob has sizes.
    CREATE TABLE blobs (
        number       INTEGER PRIMARY KEY,
        id           BLOB UNIQUE,
        size_bytes   INTEGER,
        stored_bytes INTEGER,
        chunks       INTEGER
    ) STRICT;

    CREATE TABLE chunks (
        blob   INTEGER NOT NULL,
        number INTEGER NOT NULL,
        body   BLOB NOT NULL,
        UNIQUE (blob, number)
    ) STRICT;

    -- Sequence 0 stands for the head of the stream.
    CREATE TABLE blob_references (
        stream   INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        position INTEGER NOT NULL,
        blob     INTEGER NOT NULL,
        PRIMARY KEY (stream, sequence, position)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_references_by_blob ON blob_references (blob);
",
    "
    -- Streams that are gone, and whose events are still to be dropped.
    CREATE TABLE removed_streams (
        number INTEGER PRIMARY KEY
    ) STRICT;

    -- Without it, a list of one kind would have to be sorted.
    CREATE INDEX streams_by_name ON streams (kind, id);
",
    "
    -- Bodies of chunks that several blobs may have, by the hash of the compressed body.
    CREATE TABLE pieces (
        number INTEGER PRIMARY KEY,
        id     BLOB NOT NULL UNIQUE,
        body   BLOB NOT NULL
    ) STRICT;

    CREATE TABLE shared_chunks (
        blob   INTEGER NOT NULL,
        number INTEGER NOT NULL,
        piece  INTEGER NOT NULL,
        PRIMARY KEY (blob, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX shared_chunks_by_piece ON shared_chunks (piece);

    -- All chunks of a blob, wherever their bodies are.
    CREATE VIEW all_chunks (blob, number, body) AS
        SELECT blob, number, body FROM chunks
        UNION ALL
        SELECT shared_chunks.blob, shared_chunks.number, pieces.body
        FROM shared_chunks JOIN pieces ON pieces.number = shared_chunks.piece;
",
];

/// Since this schema, several blobs can share chunks.
pub(super) const SHARED_CHUNKS: i64 = 3;

/// The newest schema that this version supports.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// The schema of a file; 0 for a new one.
pub(super) fn current(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Migrates a file to the newest schema. Each step is one transaction, so a crash leaves the file between two
/// steps.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    for (number, step) in (1..).zip(STEPS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if current(&transaction)? < number {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", number)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
