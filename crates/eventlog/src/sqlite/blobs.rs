//! Blobs and uploads: the statements, and what the writer keeps in memory.
//!
//! A row of `blobs` without an id belongs to an upload in progress, or to nobody. Only the writer's memory tells
//! the two apart: a crash abandons every upload, because the uploader is gone too. For the same reason pins are
//! kept in memory and use the monotonic clock.

use std::{collections::BTreeMap, time::Instant};

use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected},
    error::LogError,
    store::{PIN_TTL, UPLOAD_TTL, UploadId},
};

/// How many blobs one step of a collection looks at while commits wait: one index lookup each.
const SCAN_BLOBS: usize = 256;
/// How many chunks, and how many blobs, one step of a collection drops while commits wait: a few megabytes.
const FREE_CHUNKS: usize = 32;
/// Chunks with a smaller compressed body aren't shared, because that would save nothing.
const SHARED_BYTES: usize = 4 * 1024;

/// What the writer knows about blobs that isn't in the file.
#[derive(Debug)]
pub(super) struct Blobs {
    /// The number of the next row. Numbers aren't reused while this process lives, even if a row is rolled back.
    next_number: i64,
    /// When each upload expires.
    uploads: BTreeMap<i64, Instant>,
    /// Until when each blob is kept although nothing refers to it.
    pins: BTreeMap<BlobId, Instant>,
}

impl Blobs {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let last: Option<i64> =
            connection.query_row("SELECT max(number) FROM blobs", [], |row| row.get(0))?;
        Ok(Self {
            next_number: last.unwrap_or(0) + 1,
            uploads: BTreeMap::new(),
            pins: BTreeMap::new(),
        })
    }

    pub(super) fn next_number(&mut self) -> i64 {
        self.next_number += 1;
        self.next_number - 1
    }

    pub(super) fn begin(&mut self, connection: &Connection, now: Instant) -> Result<UploadId, LogError> {
        let number = self.next_number();
        connection
            .prepare_cached("INSERT INTO blobs (number) VALUES (?1)")?
            .execute([number])?;
        self.uploads.insert(number, now + UPLOAD_TTL);
        Ok(UploadId(number))
    }

    pub(super) fn put_chunk(
        &self,
        connection: &Connection,
        upload: UploadId,
        number: u32,
        compressed: &[u8],
        now: Instant,
    ) -> Result<(), BlobError> {
        self.check_upload(upload, now)?;
        // The row may be missing although the upload is known: its transaction may have been rolled back.
        let is_there = connection
            .prepare_cached("SELECT 1 FROM blobs WHERE number = ?1 AND id IS NULL")
            .and_then(|mut select| select.exists([upload.0]))
            .map_err(LogError::from)?;
        if !is_there {
            return Err(BlobError::UploadLost);
        }
        insert_chunk(connection, upload.0, number, compressed).map_err(LogError::from)?;
        Ok(())
    }

    pub(super) fn finish(
        &mut self,
        connection: &Connection,
        upload: UploadId,
        id: BlobId,
        info: BlobInfo,
        now: Instant,
    ) -> Result<(), BlobError> {
        self.check_upload(upload, now)?;
        if number_of(connection, id).map_err(LogError::from)?.is_none() {
            if stored(connection, upload.0).map_err(LogError::from)? != (info.chunks, info.stored_bytes) {
                return Err(BlobError::UploadLost);
            }
            let named = name(connection, upload.0, id, info).map_err(LogError::from)?;
            if named == 0 {
                return Err(BlobError::UploadLost);
            }
        }
        // If the blob existed already, the upload belongs to nobody from here on, and the next collection drops
        // it.
        self.uploads.remove(&upload.0);
        self.pins.insert(id, now + PIN_TTL);
        Ok(())
    }

    fn check_upload(&self, upload: UploadId, now: Instant) -> Result<(), BlobError> {
        let is_live = self.uploads.get(&upload.0).is_some_and(|until| *until > now);
        if is_live {
            Ok(())
        } else {
            Err(BlobError::UploadLost)
        }
    }

    /// Ends the grace period of some blobs.
    pub(super) fn unpin(&mut self, ids: &[BlobId]) {
        for id in ids {
            self.pins.remove(id);
        }
    }

    /// Looks at some blobs after an address, removes the address of those that nobody needs, and returns where to
    /// continue.
    pub(super) fn mark(
        &mut self,
        connection: &Connection,
        after: i64,
        now: Instant,
    ) -> Result<Option<i64>, LogError> {
        self.pins.retain(|_, until| *until > now);
        let mut scan = connection.prepare_cached(
            "SELECT number, id, EXISTS (SELECT 1 FROM blob_references WHERE blob = blobs.number)
             FROM blobs WHERE number > ?1 AND id IS NOT NULL ORDER BY number LIMIT ?2",
        )?;
        let rows = scan.query_map(params![after, SCAN_BLOBS], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, bool>(2)?))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut forget = connection.prepare_cached("UPDATE blobs SET id = NULL WHERE number = ?1")?;
        for (number, id, is_referred_to) in &rows {
            if !is_referred_to && !self.pins.contains_key(&BlobId::from_bytes(*id)) {
                forget.execute([number])?;
            }
        }
        let is_last = rows.len() < SCAN_BLOBS;
        Ok(rows.last().map(|row| row.0).filter(|_| !is_last))
    }

    /// Drops some blobs and uploads that nobody needs, or some chunks of a large one. `None` if there are none
    /// left.
    pub(super) fn free(
        &mut self,
        connection: &Connection,
        now: Instant,
    ) -> Result<Option<Collected>, LogError> {
        self.uploads.retain(|_, until| *until > now);
        let unwanted = self.unwanted(connection)?;
        if unwanted.is_empty() {
            return Ok(None);
        }
        let (mut collected, mut budget) = (Collected::default(), FREE_CHUNKS);
        for (number, was_blob) in unwanted {
            let (chunks, stored_bytes) = drop_chunks(connection, number, budget)?;
            collected.stored_bytes += stored_bytes;
            budget -= chunks;
            if budget == 0 {
                break;
            }
            connection
                .prepare_cached("DELETE FROM blobs WHERE number = ?1")?
                .execute([number])?;
            if was_blob {
                collected.blobs += 1;
            } else {
                collected.uploads += 1;
            }
        }
        Ok(Some(collected))
    }

    /// Some rows that are neither a blob nor an upload in progress, and whether they were a blob.
    fn unwanted(&self, connection: &Connection) -> rusqlite::Result<Vec<(i64, bool)>> {
        let mut list = connection.prepare_cached(
            "SELECT number, size_bytes IS NOT NULL FROM blobs WHERE id IS NULL ORDER BY number",
        )?;
        let rows = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let unwanted = rows.filter(|row| {
            row.as_ref()
                .map_or(true, |(number, _)| !self.uploads.contains_key(number))
        });
        unwanted.take(FREE_CHUNKS).collect()
    }
}

/// Adds a chunk to a row. A body that another blob has too is stored once.
pub(super) fn insert_chunk(
    connection: &Connection,
    blob: i64,
    number: u32,
    compressed: &[u8],
) -> rusqlite::Result<()> {
    if compressed.len() < SHARED_BYTES {
        connection
            .prepare_cached("INSERT INTO chunks (blob, number, body) VALUES (?1, ?2, ?3)")?
            .execute(params![blob, number, compressed])?;
        return Ok(());
    }
    let id = blake3::hash(compressed);
    let known: Option<i64> = connection
        .prepare_cached("SELECT number FROM pieces WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()?;
    let piece = match known {
        Some(piece) => piece,
        None => {
            connection
                .prepare_cached("INSERT INTO pieces (id, body) VALUES (?1, ?2)")?
                .execute(params![id.as_bytes(), compressed])?;
            connection.last_insert_rowid()
        }
    };
    connection
        .prepare_cached("INSERT INTO shared_chunks (blob, number, piece) VALUES (?1, ?2, ?3)")?
        .execute([blob, i64::from(number), piece])?;
    Ok(())
}

/// Drops the first shared chunks of a row, and the bodies that no other row uses. Returns how many chunks, and
/// how many bytes were freed.
fn drop_shared(connection: &Connection, blob: i64, limit: usize) -> rusqlite::Result<(usize, u64)> {
    let mut first = connection.prepare_cached(
        "SELECT shared_chunks.number, piece, length(body)
         FROM shared_chunks JOIN pieces ON pieces.number = piece
         WHERE blob = ?1 ORDER BY shared_chunks.number LIMIT ?2",
    )?;
    let rows = first.query_map(params![blob, limit], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, u64>(2)?,
        ))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut unlink =
        connection.prepare_cached("DELETE FROM shared_chunks WHERE blob = ?1 AND number = ?2")?;
    let mut free = connection.prepare_cached(
        "DELETE FROM pieces WHERE number = ?1
             AND NOT EXISTS (SELECT 1 FROM shared_chunks WHERE piece = ?1)",
    )?;
    let mut freed = 0;
    for (number, piece, bytes) in &rows {
        unlink.execute([blob, *number])?;
        if free.execute([piece])? > 0 {
            freed += bytes;
        }
    }
    Ok((rows.len(), freed))
}

/// Drops the first chunks of a row. Returns how many, and how many bytes were freed.
fn drop_chunks(connection: &Connection, blob: i64, limit: usize) -> rusqlite::Result<(usize, u64)> {
    let mut first = connection
        .prepare_cached("SELECT rowid, length(body) FROM chunks WHERE blob = ?1 ORDER BY number LIMIT ?2")?;
    let rows = first.query_map(params![blob, limit], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut drop = connection.prepare_cached("DELETE FROM chunks WHERE rowid = ?1")?;
    for (rowid, _) in &rows {
        drop.execute([rowid])?;
    }
    let (chunks, bytes) = (rows.len(), rows.iter().map(|row| row.1).sum::<u64>());
    let (shared, freed) = drop_shared(connection, blob, limit - chunks)?;
    Ok((chunks + shared, bytes + freed))
}

/// Gives a row its address, which makes it a blob.
pub(super) fn name(
    connection: &Connection,
    number: i64,
    id: BlobId,
    info: BlobInfo,
) -> rusqlite::Result<usize> {
    let mut update = connection.prepare_cached(
        "UPDATE blobs SET id = ?2, size_bytes = ?3, stored_bytes = ?4, chunks = ?5
         WHERE number = ?1 AND id IS NULL",
    )?;
    update.execute(params![
        number,
        id.as_bytes(),
        info.size_bytes,
        info.stored_bytes,
        info.chunks
    ])
}

/// How many chunks a row has, and their size.
fn stored(connection: &Connection, number: i64) -> rusqlite::Result<(u32, u64)> {
    connection
        .prepare_cached("SELECT count(*), coalesce(sum(length(body)), 0) FROM all_chunks WHERE blob = ?1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))
}

pub(super) fn number_of(connection: &Connection, id: BlobId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM blobs WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()
}

pub(super) fn info(connection: &Connection, id: BlobId) -> rusqlite::Result<Option<BlobInfo>> {
    connection
        .prepare_cached("SELECT size_bytes, stored_bytes, chunks FROM blobs WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| {
            Ok(BlobInfo {
                size_bytes: row.get(0)?,
                stored_bytes: row.get(1)?,
                chunks: row.get(2)?,
            })
        })
        .optional()
}

pub(super) fn chunk(connection: &Connection, id: BlobId, number: u32) -> rusqlite::Result<Option<Vec<u8>>> {
    let Some(blob) = number_of(connection, id)? else {
        return Ok(None);
    };
    connection
        .prepare_cached("SELECT body FROM all_chunks WHERE blob = ?1 AND number = ?2")?
        .query_row(params![blob, number], |row| row.get(0))
        .optional()
}
