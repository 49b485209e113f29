//! The ledger: which processes are ours, recorded before they run.
//!
//! A row is a head in the log. Rows are numbered and reused, so there are as many as there were processes at
//! once. Only the daemon that owns a home writes its rows. Several homes can share a log, so the name of a row
//! begins with the home's. Every write names the version it saw.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eventlog::{
    BadName, Commit, CommitError, Durability, Entity, EntityRecord, Head, HeadsOrder, HeadsQuery, Log,
    LogError, NoEvent, StoredHead, StreamId, Version,
};
use protocol::HomeId;
use serde::{Deserialize, Serialize};

use crate::ended::Exit;
use crate::identity::Identity;

/// How many heads are held in memory at a time.
const PAGE_HEADS: u32 = 256;
const STARTING: &str = "starting";
const RUNNING: &str = "running";
const ENDED: &str = "ended";

/// The content of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Is in the environment of everything that belongs to the process.
    pub(crate) tag: String,
    pub(crate) machine_boot_id: String,
    pub(crate) daemon_boot_id: String,
    pub(crate) keeper: Identity,
    /// Known once it runs.
    pub(crate) command: Option<Identity>,
    pub(crate) owner: String,
    pub(crate) reason: String,
    pub(crate) generation: u64,
    pub(crate) argv: Vec<String>,
    pub(crate) started_at_ms: u64,
    pub(crate) ended_at_ms: Option<u64>,
    pub(crate) exit: Option<Exit>,
}

impl EntityRecord for Record {
    const KIND: &'static str = "process";
    /// `HOME/NUMBER`.
    type Id = String;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        match (self.ended_at_ms, self.command) {
            (Some(_), _) => ENDED.into(),
            (None, Some(_)) => RUNNING.into(),
            (None, None) => STARTING.into(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Row {
    number: u32,
    known: RowVersion,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RowVersion {
    At(Version),
    /// A write failed, and may or may not have been made.
    ToBeRead,
}

/// The rows of one home.
#[derive(Debug)]
pub(crate) struct Ledger {
    log: Log,
    home_id: HomeId,
    daemon_boot_id: String,
    /// The free rows. The lock is held for a lookup, never while the log is written.
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    free: BTreeMap<u32, RowVersion>,
    next: u32,
}

/// A row that an earlier daemon didn't close.
#[derive(Debug)]
pub(crate) struct OpenRow {
    pub(crate) row: Row,
    pub(crate) record: Record,
}

impl Ledger {
    /// Reads the rows of a home. The caller closes those that are open.
    pub(crate) async fn open(
        log: Log,
        home_id: HomeId,
        daemon_boot_id: String,
    ) -> Result<(Self, Vec<OpenRow>), OpenError> {
        let prefix = format!("{}/{home_id}/", Record::KIND);
        let (mut rows, mut open) = (Rows::default(), Vec::new());
        let mut pages = log.pages(HeadsQuery {
            kind: Record::KIND.into(),
            status: None,
            order: HeadsOrder::OldestFirst,
            after: Some(StreamId::new(&prefix)?),
            limit: PAGE_HEADS,
        });
        'rows: while let Some(page) = pages.next().await? {
            for head in page {
                if !head.stream.as_str().starts_with(&prefix) {
                    break 'rows;
                }
                rows.load_row(&log, head, &prefix, &mut open);
            }
        }
        let ledger = Self {
            log,
            home_id,
            daemon_boot_id,
            rows: Mutex::new(rows),
        };
        Ok((ledger, open))
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A row that isn't in use.
    pub(crate) fn reserve(&self) -> Row {
        let mut rows = self.lock();
        let (number, known) = rows.free.pop_first().unwrap_or_else(|| {
            let number = rows.next;
            rows.next += 1;
            (number, RowVersion::At(Version::NONE))
        });
        Row { number, known }
    }

    /// Frees a row. It keeps its last content until it is reused.
    pub(crate) fn give_back(&self, row: Row) {
        self.lock().free.insert(row.number, row.known);
    }

    /// Writes a row, on its known version.
    pub(crate) async fn write(
        &self,
        row: &mut Row,
        record: &Record,
        durability: Durability,
    ) -> Result<(), CommitError> {
        let mut entity = Entity::new(format!("{}/{}", self.home_id, row.number), record.clone());
        entity.version = match row.known {
            RowVersion::At(version) => version,
            RowVersion::ToBeRead => version(
                self.log
                    .head(&Entity::<Record>::stream_of(&entity.id)?)
                    .await?
                    .as_ref(),
            ),
        };
        let written = self.commit(row, &mut entity, durability).await;
        entity.version = match &written {
            // The disk was full when the row was last written. Nobody else has written to it, so it is written
            // again.
            Err(CommitError::RolledBack { actual, .. }) => version(actual.as_deref()),
            Err(CommitError::Conflict {
                actual: Some(actual), ..
            }) if self.is_own(actual) => actual.version,
            _ => return written,
        };
        self.commit(row, &mut entity, durability).await
    }

    /// Whether a row was written by this daemon, which identifies a write of ours whose answer was lost. Anyone
    /// else shouldn't be writing it, and then the write is refused.
    fn is_own(&self, found: &StoredHead) -> bool {
        let found = Entity::<Record>::of_head(&self.log, found);
        found.is_ok_and(|row| row.record.daemon_boot_id == self.daemon_boot_id)
    }

    async fn commit(
        &self,
        row: &mut Row,
        entity: &mut Entity<Record>,
        durability: Durability,
    ) -> Result<(), CommitError> {
        let mut commit = Commit::one(entity.write(&[])?);
        commit.durability = durability;
        row.known = RowVersion::ToBeRead;
        entity.commit(&self.log, commit).await?;
        row.known = RowVersion::At(entity.version);
        Ok(())
    }
}

impl Rows {
    fn load_row(&mut self, log: &Log, head: StoredHead, prefix: &str, open: &mut Vec<OpenRow>) {
        let number = head
            .stream
            .as_str()
            .strip_prefix(prefix)
            .and_then(|number| number.parse().ok());
        let Some(number) = number else {
            return tracing::warn!(stream = %head.stream, "a ledger row has an unexpected name");
        };
        self.next = self.next.max(number + 1);
        let known = RowVersion::At(head.version);
        if &*head.head.status == ENDED {
            self.free.insert(number, known);
        } else if let Ok(Entity { record, .. }) = Entity::of_head(log, &head) {
            // A row that can't be read stays as it is, and isn't reused.
            let row = Row { number, known };
            open.push(OpenRow { row, record });
        }
    }
}

fn version(stored: Option<&StoredHead>) -> Version {
    stored.map_or(Version::NONE, |stored| stored.version)
}

/// Why a row can't be read; `None` if it can, or isn't a row.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    let problem = Entity::<Record>::problem(stream, head);
    problem.filter(|_| &*head.status != ENDED)
}

/// The rows can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    BadName(#[from] BadName),
    #[error(transparent)]
    Log(#[from] LogError),
}

#[cfg(test)]
mod tests {
    use super::Record;

    /// The log of every home holds these bytes.
    #[test]
    fn stored_rows_encode_to_the_same_bytes_again() {
        for (command, ended, exit) in [
            ("null", "null", "null"),
            (r#"{"pid":8,"start_ticks":71}"#, "9000", r#"{"code":3}"#),
            (r#"{"pid":8,"start_ticks":71}"#, "9000", r#"{"signal":9}"#),
            (r#"{"pid":8,"start_ticks":71}"#, "9000", r#""unknown""#),
        ] {
            let stored = format!(
                r#"{{"tag":"boot_1.7","machine_boot_id":"m","daemon_boot_id":"boot_1","keeper":{{"pid":7,"start_ticks":70}},"command":{command},"owner":"job/x","reason":"make","generation":1,"argv":["make"],"started_at_ms":1000,"ended_at_ms":{ended},"exit":{exit}}}"#
            );
            let read: Record = serde_json::from_str(&stored).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        }
    }
}
