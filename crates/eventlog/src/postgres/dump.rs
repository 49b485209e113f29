//! A snapshot of everything, as records.

use std::pin::pin;

use futures_util::TryStreamExt;
use tokio::sync::mpsc;

use super::{
    blobs::info_of_row,
    failure::Failure,
    pool::Pooled,
    read::{self, event_of_row, head_of_row, sequence},
    statements::head_columns,
};
use crate::{error::LogError, record::Record};

/// How many blobs or streams are listed at a time. Their chunks and events come one by one.
const PAGE_ROWS: i64 = 64;

const BEGIN: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0";

/// Sends all records, and waits for a slow receiver.
pub(super) async fn dump(mut connection: Pooled, records: &mpsc::Sender<Record>) -> Result<(), Failure> {
    connection.enter_transaction();
    connection.batch(BEGIN).await?;
    blobs(&connection, records).await?;
    streams(&connection, records).await?;
    send(records, Record::End).await?;
    connection.batch("COMMIT").await?;
    connection.left_transaction();
    Ok(())
}

async fn send(records: &mpsc::Sender<Record>, record: Record) -> Result<(), Failure> {
    let sent = records.send(record).await;
    sent.map_err(|_| Failure::Log(LogError::Closed))
}

async fn blobs(connection: &Pooled, records: &mpsc::Sender<Record>) -> Result<(), Failure> {
    let list = "
        SELECT upload, id, size_bytes, stored_bytes, chunks FROM blobs
        WHERE upload > $1 ORDER BY upload LIMIT $2";
    let client = &connection.client;
    let chunks = client
        .prepare("SELECT content FROM chunks WHERE upload = $1 ORDER BY number")
        .await?;
    let mut after = -1_i64;
    loop {
        let page = client.query(list, &[&after, &PAGE_ROWS]).await?;
        if page.is_empty() {
            return Ok(());
        }
        for row in page {
            after = row.try_get(0)?;
            let id = read::blob(row.try_get(1)?)?;
            let info = info_of_row(&row, 2)?;
            let mut rows = pin!(client.query_raw(&chunks, [after]).await?);
            while let Some(row) = rows.try_next().await? {
                let compressed = row.try_get(0)?;
                send(records, Record::Chunk { compressed }).await?;
            }
            send(records, Record::Blob { id, info }).await?;
        }
    }
}

async fn streams(connection: &Pooled, records: &mpsc::Sender<Record>) -> Result<(), Failure> {
    let list = concat!(
        "SELECT ",
        head_columns!(),
        ", number, first_sequence FROM streams WHERE version > $1 ORDER BY version LIMIT $2"
    );
    let client = &connection.client;
    let events = client
        .prepare(
            "SELECT sequence, at_ms, kind, body, ARRAY(
                 SELECT blob FROM blob_references AS reference
                 WHERE reference.stream = events.stream AND reference.sequence = events.sequence
                 ORDER BY position)
             FROM events WHERE stream = $1 ORDER BY sequence",
        )
        .await?;
    let mut after = 0_i64;
    loop {
        let page = client.query(list, &[&after, &PAGE_ROWS]).await?;
        if page.is_empty() {
            return Ok(());
        }
        for row in page {
            let found = head_of_row(&row)?;
            after = row.try_get(3)?;
            let record = Record::Stream {
                id: found.stream,
                head: found.head,
                first: sequence(row.try_get(8)?)?,
                last: found.last_sequence,
            };
            send(records, record).await?;
            let number: i64 = row.try_get(7)?;
            let mut rows = pin!(client.query_raw(&events, [number]).await?);
            while let Some(row) = rows.try_next().await? {
                let event = event_of_row(&row, 0)?;
                let blobs: Vec<&[u8]> = row.try_get(4)?;
                let blobs = blobs.into_iter().map(read::blob).collect::<Result<_, _>>()?;
                send(records, Record::Event { event, blobs }).await?;
            }
        }
    }
}
