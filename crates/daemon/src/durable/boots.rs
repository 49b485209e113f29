//! The boots of the daemons of one home. Each has a stream, and its head says how the boot ended.
//!
//! A home has one owner at a time. So when a daemon starts, every earlier boot that still says `running` has crashed.
//! It is marked as such before the first request, by a commit on the version that was read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventlog::{
    CommitError, Entity, EntityRecord, Head, Log, LogError, MaybeConflict, NewEvent, StoredHead, StreamId,
};
use kernel::Scope;
use protocol::{BootId, BootState, HomeId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;

use super::closing;
use super::error::LogStartError;
use crate::times::{self, now_ms, unix_ms};

pub(super) const KIND: &str = "boot";
const RUNNING: &str = "running";
const STOPPED: &str = "stopped";
const CRASHED: &str = "crashed";

/// How many boots are kept in memory. The log has them all.
const KEPT_BOOTS: usize = 100;
/// A boot has three notes: ready, draining, stopped. So a note never waits for room.
const QUEUE_NOTES: usize = 4;

type StoredBoot = Entity<BootRecord>;

/// The head of a boot. Its state is the status of the head.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BootRecord {
    #[serde(skip, default = "crashed")]
    state: BootState,
    home_id: String,
    pid: u32,
    version: String,
    started_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

fn crashed() -> BootState {
    BootState::Crashed
}

impl EntityRecord for BootRecord {
    const KIND: &'static str = KIND;
    type Id = String;
    type Event = NewEvent;

    fn status(&self) -> Arc<str> {
        match self.state {
            BootState::Running => RUNNING.into(),
            BootState::Stopped => STOPPED.into(),
            BootState::Crashed => CRASHED.into(),
        }
    }

    fn decode(head: &Head) -> Result<Self, serde_json::Error> {
        let mut record: Self = serde_json::from_slice(&head.body)?;
        record.state = match &*head.status {
            RUNNING => BootState::Running,
            STOPPED => BootState::Stopped,
            _ => BootState::Crashed,
        };
        Ok(record)
    }
}

/// The boots of this home as of the start of the current one. Only the owner of a home writes them, so only the current
/// one can change.
#[derive(Debug)]
pub(crate) struct Boots {
    /// Newest first, so the current one is at the front.
    boots: Vec<protocol::Boot>,
    /// How many crashed boots this start found.
    pub(crate) found_crashed: u64,
}

impl Boots {
    pub(crate) fn newest(&self, limit: usize) -> &[protocol::Boot] {
        &self.boots[..limit.min(self.boots.len())]
    }

    pub(crate) fn last_crash(&self) -> Option<&protocol::Boot> {
        self.boots.iter().find(|boot| boot.state == BootState::Crashed)
    }
}

#[derive(Debug)]
pub(crate) enum Note {
    /// It answers requests at this address.
    Ready { address: String },
    /// It no longer accepts requests. The cause says who stopped it, and why.
    Draining { cause: String },
    /// It has stopped, after cutting off this many connections.
    Stopped { cut_connections: usize },
}

/// The current boot, held by its only writer.
#[derive(Debug)]
pub(crate) struct OpenBoot {
    log: Log,
    boot: StoredBoot,
}

/// The earlier boots of a home.
pub(super) struct Past {
    /// The newest of them, oldest first.
    boots: VecDeque<protocol::Boot>,
    /// The boots without a recorded end.
    unfinished: Vec<StoredBoot>,
}

/// Reads the earlier boots of a home.
pub(super) async fn look(log: &Log, home_id: HomeId) -> Result<Past, LogError> {
    let (mut past, mut unfinished) = (VecDeque::new(), Vec::new());
    log.each_head(KIND, None, |head| match StoredBoot::of_head(log, &head) {
        Ok(boot) if boot.record.home_id == home_id.to_string() => {
            if past.len() == KEPT_BOOTS {
                past.pop_front();
            }
            past.push_back(to_wire(&boot));
            if boot.record.state == BootState::Running {
                unfinished.push(boot);
            }
        }
        _ => {}
    })
    .await?;
    Ok(Past {
        boots: past,
        unfinished,
    })
}

/// Marks earlier boots that have no end as crashed, and begins this one. No other daemon of this home may be running.
pub(super) async fn begin(
    log: &Log,
    past: Past,
    home_id: HomeId,
    boot_id: BootId,
    started_at: SystemTime,
) -> Result<(OpenBoot, Boots), LogStartError> {
    let Past {
        boots: mut past,
        unfinished,
    } = past;
    let found_crashed = unfinished.len() as u64;
    for mut boot in unfinished {
        boot.record.state = BootState::Crashed;
        mark_crashed(log, &mut boot, boot_id)
            .await
            .map_err(LogStartError::Write)?;
        tracing::warn!(
            boot = boot.id,
            pid = boot.record.pid,
            "an earlier daemon has crashed"
        );
        past.iter_mut()
            .filter(|past| past.id == boot.id)
            .for_each(|past| past.state = BootState::Crashed);
    }
    let made = OpenBoot::make(log, home_id, boot_id, started_at).await;
    let (boot, ours) = made.map_err(LogStartError::Write)?;
    let boots = std::iter::once(ours).chain(past.into_iter().rev()).collect();
    Ok((boot, Boots { boots, found_crashed }))
}

/// The home that an unshared log belongs to: this one if it has ever used the log, otherwise the last one that did,
/// because then the log was moved here from elsewhere.
pub(super) async fn home_of_log(log: &Log, own: HomeId) -> Result<HomeId, LogError> {
    let (mut newest, mut is_own) = (own, false);
    log.each_head(KIND, None, |head| {
        if let Some(home) = home_of(log, &head) {
            newest = home;
            is_own |= home == own;
        }
    })
    .await?;
    Ok(if is_own { own } else { newest })
}

/// The home with the newest boot in the log.
pub(super) async fn newest_home(log: &Log) -> Result<Option<HomeId>, LogError> {
    let mut newest = None;
    // Boot ids sort by time.
    log.each_head(KIND, None, |head| newest = home_of(log, &head).or(newest))
        .await?;
    Ok(newest)
}

fn home_of(log: &Log, head: &StoredHead) -> Option<HomeId> {
    StoredBoot::of_head(log, head).ok()?.record.home_id.parse().ok()
}

async fn mark_crashed(log: &Log, boot: &mut StoredBoot, found_by: BootId) -> Result<(), CommitError> {
    let event = NewEvent::json("crashed", &json!({ "found_by": found_by.to_string() }))?;
    match boot.save(log, &[event]).await {
        // Another writer changed it in the meantime, so it knows more than we do.
        Err(error) if error.is_conflict() => {
            tracing::warn!(
                boot = boot.id,
                "the end of an earlier daemon was recorded by somebody else"
            );
            Ok(())
        }
        done => done,
    }
}

impl OpenBoot {
    async fn make(
        log: &Log,
        home_id: HomeId,
        boot_id: BootId,
        started_at: SystemTime,
    ) -> Result<(Self, protocol::Boot), CommitError> {
        let record = BootRecord {
            state: BootState::Running,
            home_id: home_id.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_ms: unix_ms(started_at),
            ended_at_ms: None,
            cause: None,
        };
        let started = NewEvent::json("started", &record)?;
        let mut boot = StoredBoot::new(boot_id.to_string(), record);
        boot.save(log, &[started]).await?;
        let wire = to_wire(&boot);
        let log = log.clone();
        Ok((Self { log, boot }, wire))
    }

    /// A queue for notes, and the task that writes them to the log.
    pub(crate) fn notes(self, closing: Scope) -> (mpsc::Sender<Note>, impl Future<Output = ()> + Send) {
        let (sender, receiver) = mpsc::channel(QUEUE_NOTES);
        (sender, self.write_down(receiver, closing))
    }

    async fn write_down(mut self, mut notes: mpsc::Receiver<Note>, closing: Scope) {
        while let Some(note) = closing::next(&mut notes, &closing).await {
            let mut written = self.write(&note).await;
            if let Err(CommitError::Conflict {
                actual: Some(actual), ..
            }) = &written
            {
                // Nothing else writes to this stream, so one of our notes was committed and its answer was
                // lost.
                self.boot.version = actual.version;
                written = self.write(&note).await;
            }
            // The daemon continues without it. Without the last note, the boot counts as crashed.
            if let Err(error) = written {
                tracing::warn!(%error, ?note, "could not record a note about this boot");
            }
        }
    }

    async fn write(&mut self, note: &Note) -> Result<(), CommitError> {
        let record = &mut self.boot.record;
        let event = match note {
            Note::Ready { address } => NewEvent::json("ready", &json!({ "address": address })),
            Note::Draining { cause } => {
                record.cause = Some(cause.clone());
                NewEvent::json("draining", &json!({ "cause": cause }))
            }
            Note::Stopped { cut_connections } => {
                record.ended_at_ms = Some(now_ms());
                record.state = BootState::Stopped;
                NewEvent::json("stopped", &json!({ "cut_connections": cut_connections }))
            }
        };
        self.boot.save(&self.log, &[event?]).await
    }
}

/// Why the head of a boot can't be read; `None` if it can, or if it isn't the head of a boot.
pub(super) fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    StoredBoot::problem(stream, head)
}

fn to_wire(boot: &StoredBoot) -> protocol::Boot {
    let time = |ms: u64| times::rfc3339(UNIX_EPOCH + Duration::from_millis(ms));
    let record = &boot.record;
    protocol::Boot {
        id: boot.id.clone(),
        state: record.state,
        pid: record.pid,
        version: record.version.clone(),
        started_at: time(record.started_at_ms),
        ended_at: record.ended_at_ms.map(time),
        cause: record.cause.clone(),
    }
}
