//! A log that fails on purpose, for the tests of its users. No daemon has one.

use std::{
    collections::HashMap,
    ops::Range,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed, Durability, StoredHead},
    error::{BackupError, LogError},
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version},
    record::{Record, RestoreError},
    store::{
        BlobStart, HeadsQuery, Health, Page, RecentlyChangedQuery, RetentionPolicy, ServerInfo, Sizes, Store,
        UploadId,
    },
};

/// What fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// A commit is refused because the disk is full.
    Commit,
    /// Just before a commit, all other references to the blobs that it names are removed, and the blobs are
    /// collected.
    Collected,
    /// A relaxed commit is acknowledged and then rolled back.
    RollBack,
    /// A commit isn't made because the database can't be reached.
    Away,
    /// A commit is made, but its answer is lost.
    AnswerLost,
    /// A head can't be read.
    Head,
    /// Events can't be read.
    Events,
}

/// What fails in a log, and how often. Clones refer to the same plan.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Guards the planned faults; held to plan one or to count it.
    planned: Arc<Mutex<FaultPlan>>,
}

#[derive(Debug, Default)]
struct FaultPlan {
    faults: Vec<PlannedFault>,
    /// How often each fault has happened.
    happened: HashMap<&'static str, usize>,
    /// The versions that were acknowledged and rolled back.
    rolled_back: Vec<Version>,
}

#[derive(Debug)]
struct PlannedFault {
    fault: Fault,
    /// The prefix of the names of its streams.
    prefix: String,
    /// How many operations succeed before it.
    before: usize,
    /// How many operations fail then.
    left: usize,
}

impl Faults {
    /// Plans a fault: of the next operations of this kind on streams with this prefix, those with these numbers
    /// fail, counted from 0.
    pub fn plan(&self, fault: Fault, prefix: &str, which: Range<usize>) {
        self.lock().faults.push(PlannedFault {
            fault,
            prefix: prefix.to_owned(),
            before: which.start,
            left: which.len(),
        });
    }

    /// Cancels all planned faults.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// How often this fault has happened.
    #[must_use]
    pub fn happened(&self, fault: Fault) -> usize {
        self.lock().happened.get(fault.name()).copied().unwrap_or(0)
    }

    fn strikes<'a>(&self, fault: Fault, streams: impl Iterator<Item = &'a StreamId> + Clone) -> bool {
        let mut planned = self.lock();
        let mut strikes = false;
        for planned in &mut planned.faults {
            let is_meant = |stream: &StreamId| stream.as_str().starts_with(&planned.prefix);
            if planned.fault != fault || !streams.clone().any(is_meant) {
                continue;
            }
            if planned.before > 0 {
                planned.before -= 1;
            } else if planned.left > 0 {
                planned.left -= 1;
                strikes = true;
            }
        }
        if strikes {
            *planned.happened.entry(fault.name()).or_default() += 1;
        }
        strikes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FaultPlan> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Collected => "collected",
            Self::RollBack => "roll back",
            Self::Away => "away",
            Self::AnswerLost => "answer lost",
            Self::Head => "head",
            Self::Events => "events",
        }
    }
}

/// An engine with faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) faults: Faults,
}

impl Faulty {
    /// Acknowledges a commit and loses it. Its version is never used.
    async fn lose(&self, commit: &Commit) -> Result<Vec<Committed>, LogError> {
        let mut lost = Vec::new();
        for write in &commit.writes {
            let head = self.store.head(&write.stream).await?;
            let last = head.map_or(Sequence::START, |head| head.last_sequence);
            lost.push(Committed {
                version: Version::from_u64(write.expected.get() | (1 << 62)),
                last_sequence: Sequence::from_u64(last.get() + write.events.len() as u64),
            });
        }
        Ok(lost)
    }
}

#[async_trait]
impl Store for Faulty {
    async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError> {
        let streams = || commit.writes.iter().map(|write| &write.stream);
        if commit.durability == Durability::Relaxed && self.faults.strikes(Fault::RollBack, streams()) {
            let lost = self.lose(&commit).await?;
            let versions = lost.iter().map(|committed| committed.version);
            self.faults.lock().rolled_back.extend(versions);
            return Ok(lost);
        }
        if self.faults.strikes(Fault::Commit, streams()) {
            return Err(LogError::DiskFull.into());
        }
        let on_what_is_lost = {
            let planned = self.faults.lock();
            let is_lost = |expected: Version| planned.rolled_back.contains(&expected);
            let write = commit.writes.iter().find(|write| is_lost(write.expected));
            write.map(|write| write.stream.clone())
        };
        if let Some(stream) = on_what_is_lost {
            let actual = self.store.head(&stream).await?.map(Box::new);
            return Err(CommitError::RolledBack { stream, actual });
        }
        let events = commit.writes.iter().flat_map(|write| &write.events);
        let named: Vec<BlobId> = events.flat_map(|event| event.blobs.clone()).collect();
        if !named.is_empty() && self.faults.strikes(Fault::Collected, streams()) {
            self.store.unpin_blobs(named).await?;
            self.store.collect_blobs().await?;
        }
        let no_answer = || Arc::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        if self.faults.strikes(Fault::Away, streams()) {
            return Err(LogError::Unreachable(no_answer()).into());
        }
        let is_answer_lost = self.faults.strikes(Fault::AnswerLost, streams());
        let committed = self.store.commit(commit).await;
        match is_answer_lost {
            true => Err(LogError::OutcomeUnknown(no_answer()).into()),
            false => committed,
        }
    }

    async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError> {
        if self.faults.strikes(Fault::Head, std::iter::once(stream)) {
            return Err(LogError::ReadOnly);
        }
        self.store.head(stream).await
    }

    async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError> {
        if self.faults.strikes(Fault::Events, std::iter::once(stream)) {
            return Err(LogError::ReadOnly);
        }
        self.store.read(stream, after, limit).await
    }

    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        self.store.remove(streams).await
    }

    async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.heads(query).await
    }

    async fn recently_changed(&self, query: RecentlyChangedQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.recently_changed(query).await
    }

    async fn lease(&self, key: Arc<str>, owner: Arc<str>, ttl: Duration) -> Result<Lease, LeaseError> {
        self.store.lease(key, owner, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError> {
        self.store.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LeaseError> {
        self.store.release(lease).await
    }

    async fn begin_upload(&self) -> Result<UploadId, LogError> {
        self.store.begin_upload().await
    }

    async fn put_chunk(&self, upload: UploadId, number: u32, compressed: Vec<u8>) -> Result<(), BlobError> {
        self.store.put_chunk(upload, number, compressed).await
    }

    async fn finish_upload(&self, upload: UploadId, id: BlobId, info: BlobInfo) -> Result<(), BlobError> {
        self.store.finish_upload(upload, id, info).await
    }

    async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError> {
        self.store.blob_info(id).await
    }

    async fn blob_chunk(&self, id: BlobId, number: u32) -> Result<Option<Vec<u8>>, LogError> {
        self.store.blob_chunk(id, number).await
    }

    async fn blob_starts(&self, ids: Vec<BlobId>) -> Result<Vec<Option<BlobStart>>, LogError> {
        self.store.blob_starts(ids).await
    }

    async fn unpin_blobs(&self, ids: Vec<BlobId>) -> Result<(), LogError> {
        self.store.unpin_blobs(ids).await
    }

    async fn collect_blobs(&self) -> Result<Collected, LogError> {
        self.store.collect_blobs().await
    }

    async fn trim(
        &self,
        kind: Arc<str>,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
        self.store.trim(kind, policy).await
    }

    async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError> {
        self.store.drop_events(stream, up_to, seen).await
    }

    async fn sizes(&self) -> Result<Sizes, LogError> {
        self.store.sizes().await
    }

    async fn check_integrity(&self) -> Result<Vec<String>, LogError> {
        self.store.check_integrity().await
    }

    async fn compact(&self) -> Result<(), LogError> {
        self.store.compact().await
    }

    async fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError> {
        self.store.dump(records).await
    }

    async fn restore(&self, records: mpsc::Receiver<Record>) -> Result<(), RestoreError> {
        self.store.restore(records).await
    }

    async fn backup(&self, path: PathBuf) -> Result<(), BackupError> {
        self.store.backup(path).await
    }

    fn server(&self) -> Option<&ServerInfo> {
        self.store.server()
    }

    fn health(&self) -> Health {
        self.store.health()
    }
}
