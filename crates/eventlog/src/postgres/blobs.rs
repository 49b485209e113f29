//! Blobs and uploads, by the database's clock.
//!
//! A collection can't race with a commit. The commit locks the rows of the blobs that it refers to. The
//! collection first locks rows for which it need not wait, and only then, in a separate statement, checks whether
//! they still have no reference and no pin. It sees everything that was committed before the lock, and later
//! commits find the blob gone.

use std::sync::Arc;

use tokio_postgres::Row;

use super::{
    failure::{Failure, outcome},
    leases::microseconds,
    pool::{Pool, Pooled},
    read::{number, unsigned},
};
use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected},
    error::LogError,
    store::{PIN_TTL, UPLOAD_TTL, UploadId},
};

/// How many blobs or uploads one transaction of a collection takes: few enough to be short.
const COLLECT_ROWS: i64 = 64;

pub(super) async fn begin_upload(connection: Pooled) -> Result<UploadId, Failure> {
    let ttl = microseconds(UPLOAD_TTL);
    let row = connection
        .query_one(&connection.statements.begin_upload, [&ttl])
        .await?;
    Ok(UploadId(row.try_get(0)?))
}

/// Putting a chunk twice has the same effect as once. It needn't be durable before the upload is finished.
pub(super) async fn put_chunk(
    mut connection: Pooled,
    upload: UploadId,
    chunk: u32,
    compressed: &[u8],
) -> Result<(), Failure<BlobError>> {
    connection.enter_transaction();
    let chunk = i64::from(chunk);
    let (begun, put, ended) = tokio::join!(
        biased;
        connection.batch("BEGIN; SET LOCAL synchronous_commit = off"),
        connection.execute(&connection.statements.put_chunk, [&upload.0, &chunk, &compressed]),
        connection.batch("COMMIT"),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    begun?;
    let rows = put?;
    ended?;
    if rows == 1 {
        Ok(())
    } else {
        Err(Failure::Refused(BlobError::UploadLost))
    }
}

pub(super) async fn finish_upload(
    mut connection: Pooled,
    upload: UploadId,
    id: BlobId,
    info: BlobInfo,
) -> Result<(), Failure<BlobError>> {
    connection.enter_transaction();
    match is_whole(&connection, upload, info).await {
        Ok(true) => {}
        Ok(false) => {
            connection.roll_back().await;
            return Err(Failure::Refused(BlobError::UploadLost));
        }
        Err(failed) => {
            connection.roll_back().await;
            return Err(failed);
        }
    }
    let (size_bytes, stored_bytes) = (number(info.size_bytes), number(info.stored_bytes));
    let (id, chunks, pin) = (
        id.as_bytes().as_slice(),
        i64::from(info.chunks),
        microseconds(PIN_TTL),
    );
    let statements = &connection.statements;
    let (made, dropped, ended) = tokio::join!(
        biased;
        connection.execute(&statements.make_blob, [&id, &upload.0, &size_bytes, &stored_bytes, &chunks, &pin],
        ),
        connection.execute(&statements.drop_if_there_already, [&upload.0]),
        connection.batch("COMMIT"),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    outcome([made.map(drop), dropped.map(drop)], ended)
}

/// Removes an upload, and returns whether it existed with all its chunks.
async fn is_whole(connection: &Pooled, upload: UploadId, info: BlobInfo) -> Result<bool, Failure<BlobError>> {
    let statements = &connection.statements;
    let ((), taken, counted) = tokio::try_join!(
        biased;
        connection.batch("BEGIN"),
        connection.execute(&statements.take_upload, [&upload.0]),
        connection.query_one(&statements.count_chunks, [&upload.0]),
    )?;
    let (count, end): (i64, i64) = (counted.try_get(0)?, counted.try_get(1)?);
    let chunks = i64::from(info.chunks);
    Ok(taken == 1 && count == chunks && end == chunks)
}

pub(super) async fn info(connection: Pooled, id: BlobId) -> Result<Option<BlobInfo>, Failure> {
    let id = id.as_bytes().as_slice();
    let row = connection
        .query_opt(&connection.statements.blob_info, [&id])
        .await?;
    row.map(|row| info_of_row(&row, 0)).transpose()
}

/// The size of a blob, from three columns.
pub(super) fn info_of_row<E>(row: &Row, first: usize) -> Result<BlobInfo, Failure<E>> {
    let chunks: i64 = row.try_get(first + 2)?;
    Ok(BlobInfo {
        size_bytes: unsigned(row.try_get(first)?)?,
        stored_bytes: unsigned(row.try_get(first + 1)?)?,
        chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
    })
}

pub(super) async fn chunk(connection: Pooled, id: BlobId, chunk: u32) -> Result<Option<Vec<u8>>, Failure> {
    let (id, chunk) = (id.as_bytes().as_slice(), i64::from(chunk));
    let row = connection
        .query_opt(&connection.statements.blob_chunk, [&id, &chunk])
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Ends the grace period of blobs.
pub(super) async fn unpin(connection: Pooled, ids: &[BlobId]) -> Result<(), Failure> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let unpin = "UPDATE blobs SET pinned_until = clock_timestamp() WHERE id = ANY($1)";
    let done = connection.client.execute(unpin, &[&ids]).await;
    done.map_err(Failure::in_write)?;
    Ok(())
}

/// What one step of a collection did, and where to continue.
pub(super) struct Step<C> {
    pub(super) freed: u64,
    pub(super) stored_bytes: u64,
    pub(super) next: Option<C>,
}

/// Drops some blobs after an address that nothing needs.
pub(super) async fn collect_some(mut connection: Pooled, after: &[u8]) -> Result<Step<Vec<u8>>, Failure> {
    connection.enter_transaction();
    let client = &connection.client;
    connection.batch("BEGIN").await?;
    let lock = "
        SELECT id FROM blobs
        WHERE id > $1 AND pinned_until <= clock_timestamp()
            AND NOT EXISTS (SELECT FROM blob_references WHERE blob = id)
        ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
    let rows = client.query(lock, &[&after, &COLLECT_ROWS]).await?;
    let locked: Vec<&[u8]> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let drop_blobs = "
        WITH unused AS (
            DELETE FROM blobs
            WHERE id = ANY($1) AND pinned_until <= clock_timestamp()
                AND NOT EXISTS (SELECT FROM blob_references WHERE blob = id)
            RETURNING upload, stored_bytes
        ), dropped AS (
            DELETE FROM chunks USING unused WHERE chunks.upload = unused.upload
        )
        SELECT count(*), coalesce(sum(stored_bytes), 0)::bigint FROM unused";
    let freed = client.query_one(drop_blobs, &[&locked]).await?;
    connection.batch("COMMIT").await.map_err(Failure::in_write)?;
    let next = locked.last().map(|last| last.to_vec());
    connection.left_transaction();
    step(&freed, next)
}

pub(super) async fn collect_some_uploads(connection: Pooled) -> Result<Step<()>, Failure> {
    // The expiry of an upload never changes, so one statement can check and drop.
    let drop_uploads = "
        WITH given_up AS (
            DELETE FROM uploads WHERE number IN (
                SELECT number FROM uploads WHERE expires_at <= clock_timestamp()
                LIMIT $1 FOR UPDATE SKIP LOCKED)
            RETURNING number
        ), dropped AS (
            DELETE FROM chunks USING given_up WHERE upload = given_up.number
            RETURNING octet_length(content) AS stored_bytes
        )
        SELECT (SELECT count(*) FROM given_up),
            coalesce((SELECT sum(stored_bytes) FROM dropped), 0)::bigint";
    let freed = connection
        .client
        .query_one(drop_uploads, &[&COLLECT_ROWS])
        .await
        .map_err(Failure::in_write)?;
    let next = (freed.try_get::<_, i64>(0)? == COLLECT_ROWS).then_some(());
    step(&freed, next)
}

fn step<C>(freed: &Row, next: Option<C>) -> Result<Step<C>, Failure> {
    Ok(Step {
        freed: unsigned(freed.try_get(0)?)?,
        stored_bytes: unsigned(freed.try_get(1)?)?,
        next,
    })
}

/// Drops everything that nothing needs, bit by bit.
pub(super) async fn collect(pool: &Arc<Pool>) -> Result<Collected, LogError> {
    let mut collected = Collected::default();
    let mut place = Some(Vec::new());
    while let Some(after) = place {
        let step: Step<Vec<u8>> = pool.write(|connection| collect_some(connection, &after)).await?;
        collected.blobs += step.freed;
        collected.stored_bytes += step.stored_bytes;
        place = step.next;
    }
    let mut more = Some(());
    while more.is_some() {
        let step: Step<()> = pool.write(collect_some_uploads).await?;
        collected.uploads += step.freed;
        collected.stored_bytes += step.stored_bytes;
        more = step.next;
    }
    Ok(collected)
}
