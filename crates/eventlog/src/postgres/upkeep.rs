//! Sizes, integrity checks, and returning space.

use super::{failure::Failure, pool::Pooled, read::unsigned};
use crate::store::Sizes;

/// How many problems of a kind are listed. More would add nothing.
const PROBLEMS: i64 = 20;

pub(super) async fn sizes(connection: Pooled, schema: &str) -> Result<Sizes, Failure> {
    // Tables, indexes and TOAST, but not the server's own maps of them. Sequence numbers have no gaps, so events
    // needn't be counted one by one.
    let sql = "
        WITH own AS (
            SELECT pg_class.oid, reltoastrelid
            FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = $1 AND relkind IN ('r', 'i')
        ), files AS (
            SELECT oid FROM own
            UNION SELECT reltoastrelid FROM own WHERE reltoastrelid <> 0
            UNION SELECT indexrelid FROM own JOIN pg_index ON indrelid = reltoastrelid
        )
        SELECT
            (SELECT coalesce(sum(pg_relation_size(oid)), 0)::bigint FROM files),
            (SELECT count(*) FROM streams),
            (SELECT coalesce(sum(last_sequence - first_sequence + 1), 0)::bigint FROM streams),
            (SELECT count(*) FROM blobs),
            (SELECT coalesce(sum(stored_bytes), 0)::bigint FROM blobs)";
    let row = connection.client.query_one(sql, &[&schema]).await?;
    Ok(Sizes {
        total_bytes: unsigned(row.try_get(0)?)?,
        // The server only knows its free space after a long scan, and its write-ahead log isn't ours alone.
        free_bytes: 0,
        wal_bytes: 0,
        streams: unsigned(row.try_get(1)?)?,
        events: unsigned(row.try_get(2)?)?,
        blobs: unsigned(row.try_get(3)?)?,
        blob_bytes: unsigned(row.try_get(4)?)?,
    })
}

/// Each finds one kind of problem and describes it.
const CHECKS: &[&str] = &[
    "SELECT format('the stream `%s` should have the events from %s to %s, but has %s of them',
         id, first_sequence, last_sequence, found)
     FROM streams, LATERAL (
         SELECT count(*) AS found FROM events
         WHERE stream = number AND sequence BETWEEN first_sequence AND last_sequence
     ) AS counted
     WHERE found <> last_sequence - first_sequence + 1 ORDER BY id LIMIT $1",
    "SELECT format('the event %s of stream number %s belongs to no stream', sequence, stream)
     FROM events LEFT JOIN streams ON number = stream
     WHERE (number IS NULL AND NOT EXISTS (SELECT FROM removed_streams WHERE removed_streams.number = stream))
         OR sequence NOT BETWEEN first_sequence AND last_sequence
     ORDER BY stream, sequence LIMIT $1",
    "SELECT format('the blob %s is referred to, but is not there', encode(blob, 'hex'))
     FROM blob_references LEFT JOIN blobs ON id = blob WHERE id IS NULL
     GROUP BY blob ORDER BY blob LIMIT $1",
    "SELECT format('the blob %s should have %s chunks of %s bytes, but has %s of %s',
         encode(id, 'hex'), chunks, stored_bytes, found, found_bytes)
     FROM blobs, LATERAL (
         SELECT count(*) AS found, coalesce(sum(octet_length(content)), 0) AS found_bytes
         FROM chunks WHERE chunks.upload = blobs.upload AND number < blobs.chunks
     ) AS counted
     WHERE found <> chunks OR found_bytes <> stored_bytes ORDER BY id LIMIT $1",
    "SELECT format('the stream `%s` has a version that was never given out', id)
     FROM streams, versions WHERE version > last_value ORDER BY id LIMIT $1",
    "SELECT format('the lease on `%s` has a token that was never given out', key)
     FROM leases, versions WHERE token > last_value ORDER BY key LIMIT $1",
];

pub(super) async fn check_integrity(mut connection: Pooled) -> Result<Vec<String>, Failure> {
    connection.enter_transaction();
    let client = &connection.client;
    // One snapshot for all checks, so that a commit in between isn't a problem.
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let mut problems = Vec::new();
    for check in CHECKS {
        for row in client.query(*check, &[&PROBLEMS]).await? {
            problems.push(row.try_get(0)?);
        }
    }
    connection.batch("COMMIT").await?;
    connection.left_transaction();
    Ok(problems)
}

/// Returns unused pages. The server also does this by itself now and then, but expired leases are ours to sweep.
pub(super) async fn compact(connection: Pooled) -> Result<(), Failure> {
    let client = &connection.client;
    client
        .execute("DELETE FROM leases WHERE expires_at <= clock_timestamp()", &[])
        .await?;
    for table in [
        "events",
        "chunks",
        "blob_references",
        "blobs",
        "uploads",
        "streams",
        "removed_streams",
        "leases",
    ] {
        connection.batch(&format!("VACUUM {table}")).await?;
    }
    Ok(())
}
