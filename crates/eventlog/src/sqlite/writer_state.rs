//! What the writer uses inside a transaction.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kernel::Clock;
use rusqlite::Connection;

use super::{apply, blobs::Blobs, leases::Leases, removal, retention, stream_cache::StreamCache};
use crate::{
    blob::Trimmed,
    commit::{Commit, CommitError, Committed},
    error::LogError,
    hub::Change,
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version},
};

pub(super) struct WriterState {
    pub(super) connection: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) leases: Leases,
    pub(super) blobs: Blobs,
    streams: StreamCache,
    /// The last version or token that was assigned. It never goes back, not even when a transaction is rolled
    /// back, because some may have been seen.
    version: u64,
    /// The last version or token that is settled: on disk, or rolled back.
    settled: u64,
    /// The changes to publish when the transaction is on disk.
    changes: Vec<Change>,
    /// Leases that were taken in the transaction, and are void if it is rolled back.
    taken: Vec<Lease>,
}

impl WriterState {
    pub(super) fn new(connection: Connection, clock: Arc<dyn Clock>) -> rusqlite::Result<Self> {
        let version = connection.query_row("SELECT value FROM meta WHERE key = 'version'", [], |row| {
            row.get(0)
        })?;
        let blobs = Blobs::load(&connection)?;
        Ok(Self {
            connection,
            clock,
            leases: Leases::default(),
            blobs,
            streams: StreamCache::default(),
            version,
            settled: version,
            changes: Vec::new(),
            taken: Vec::new(),
        })
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn next_version(&mut self) -> Version {
        self.version += 1;
        Version::from_u64(self.version)
    }

    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Vec<Committed>, CommitError> {
        let (now, version) = (self.clock.now(), &mut self.version);
        let (streams, leases) = (&mut self.streams, &self.leases);
        let next_version = || {
            *version += 1;
            Version::from_u64(*version)
        };
        let (committed, changes) =
            apply::commit(&self.connection, commit, streams, leases, now, next_version)?;
        self.changes.extend(changes);
        Ok(committed)
    }

    pub(super) fn remove(&mut self, streams: &[(StreamId, Version)]) -> Result<(), CommitError> {
        self.changes
            .extend(removal::remove(&self.connection, &mut self.streams, streams)?);
        Ok(())
    }

    /// Drops some of the oldest events of a stream. `None` if there are none left up to that sequence number.
    pub(super) fn drop_events(
        &mut self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<Option<Trimmed>, CommitError> {
        let there = apply::check_version(&self.connection, &mut self.streams, stream, seen)?;
        let Some(there) = there else { return Ok(None) };
        let trimmed = retention::trim_stream(&self.connection, there.number, up_to);
        Ok(trimmed.map_err(LogError::from)?)
    }

    pub(super) fn lease(
        &mut self,
        key: Arc<str>,
        owner: Arc<str>,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let (now, version) = (self.clock.now(), &mut self.version);
        let lease = self.leases.take(key, owner, ttl, now, || {
            *version += 1;
            Version::from_u64(*version)
        })?;
        self.taken.push(lease.clone());
        Ok(lease)
    }

    /// Commits the transaction, and returns the changes to publish.
    pub(super) fn write_out(&mut self) -> rusqlite::Result<Vec<Change>> {
        self.connection
            .prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'version'")?
            .execute([self.version])?;
        self.connection.execute_batch("COMMIT")?;
        self.taken.clear();
        self.settled = self.version;
        Ok(std::mem::take(&mut self.changes))
    }

    /// Rolls the transaction back, and returns whether that worked.
    pub(super) fn roll_back(&mut self) -> bool {
        self.changes.clear();
        self.streams.roll_back(self.settled + 1..=self.version);
        self.settled = self.version;
        for lease in self.taken.drain(..) {
            self.leases.forget(&lease);
        }
        self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok()
    }
}
