//! The lives of the daemons of one home: a stream each, with a head that says how it ended.
//!
//! A head that says `running` is a promise that somebody lives. Whoever owns the home next knows better: they are
//! alive, and there is only one owner. So at each start, before the first request, lives that still say `running`
//! are marked `crashed`, by a commit on the version that was seen.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventlog::{Commit, CommitError, Head, Log, LogError, NewEvent, StoredHead, StreamId, Version, Write};
use kernel::Scope;
use protocol::{BootId, HomeId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::closing;
use super::error::LogStartError;
use crate::times::{self, now_ms, unix_ms};

/// The kind of these streams.
pub(super) const KIND: &str = "boot";
const RUNNING: &str = "running";
const STOPPED: &str = "stopped";
const CRASHED: &str = "crashed";

/// How many lives are remembered at hand. Nobody looks further back; the log has them all.
const KEPT_BOOTS: usize = 100;
/// A life has three notes: ready, draining, stopped. None ever waits for room.
const QUEUE_NOTES: usize = 4;

/// What the head of a life says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Body {
    home_id: String,
    pid: u32,
    version: String,
    started_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

/// The lives of this home as of the start of this one. Only the owner of a home writes them, and that is us, so
/// nothing but our own can change.
#[derive(Debug)]
pub(crate) struct Boots {
    /// Newest first; the first one is ours.
    boots: Vec<protocol::Boot>,
    /// How many this start found without an end.
    pub(crate) found_crashed: u64,
}

impl Boots {
    /// The newest ones.
    pub(crate) fn newest(&self, limit: usize) -> &[protocol::Boot] {
        &self.boots[..limit.min(self.boots.len())]
    }

    /// The last one that ended without a word.
    pub(crate) fn last_crash(&self) -> Option<&protocol::Boot> {
        self.boots
            .iter()
            .find(|boot| boot.state == protocol::BootState::Crashed)
    }
}

/// Something that happened in this life.
#[derive(Debug)]
pub(crate) enum Note {
    /// It answers requests.
    Ready {
        /// Where.
        address: String,
    },
    /// It takes no more.
    Draining {
        /// Who ended it, and why.
        cause: String,
    },
    /// Nothing is left to be done.
    Stopped {
        /// How many connections were cut off.
        cut_connections: usize,
    },
}

/// The life of this daemon, as its only writer has it.
#[derive(Debug)]
pub(crate) struct OpenBoot {
    log: Log,
    stream: StreamId,
    version: Version,
    body: Body,
}

/// The earlier lives of a home.
pub(super) struct Past {
    /// The newest of them, oldest first.
    boots: VecDeque<protocol::Boot>,
    /// Those of which it was not said how they ended.
    unfinished: Vec<(StoredHead, Body)>,
}

/// Looks at the earlier lives of a home.
pub(super) async fn look(log: &Log, home_id: HomeId) -> Result<Past, LogError> {
    let (mut past, mut unfinished) = (VecDeque::new(), Vec::new());
    log.each_head(KIND, None, |head| match body_of(log, &head) {
        Some(body) if body.home_id == home_id.to_string() => {
            if &*head.head.status == RUNNING {
                unfinished.push((head.clone(), body.clone()));
            }
            if past.len() == KEPT_BOOTS {
                past.pop_front();
            }
            past.push_back(to_wire(&head, &body));
        }
        _ => {}
    })
    .await?;
    Ok(Past {
        boots: past,
        unfinished,
    })
}

/// Writes down how earlier lives ended, and begins this one. Nobody else lives in this home any more.
pub(super) async fn begin(
    log: &Log,
    past: Past,
    (home_id, boot_id): (HomeId, BootId),
    started_at: SystemTime,
) -> Result<(OpenBoot, Boots), LogStartError> {
    let Past {
        boots: mut past,
        unfinished,
    } = past;
    let mut found_crashed = 0;
    for (head, body) in &unfinished {
        mark_crashed(log, head, body, boot_id).await?;
        found_crashed += 1;
        let id = id_of(&head.stream);
        tracing::warn!(
            boot = id,
            pid = body.pid,
            "an earlier daemon ended without a word"
        );
        past.iter_mut()
            .filter(|boot| boot.id == id)
            .for_each(|boot| boot.state = protocol::BootState::Crashed);
    }

    let (boot, ours) = OpenBoot::make(log, home_id, boot_id, started_at).await?;
    let boots = std::iter::once(ours).chain(past.into_iter().rev()).collect();
    Ok((boot, Boots { boots, found_crashed }))
}

/// The home that a log belongs to which nobody shares: this one if it has ever lived with it, otherwise the one that was the
/// last to do so, because then the log was brought here from elsewhere.
pub(super) async fn home_of_log(log: &Log, own: HomeId) -> Result<HomeId, LogError> {
    let (mut newest, mut is_own) = (own, false);
    log.each_head(KIND, None, |head| {
        if let Some(home) = body_of(log, &head).and_then(|body| body.home_id.parse().ok()) {
            newest = home;
            is_own |= home == own;
        }
    })
    .await?;
    Ok(if is_own { own } else { newest })
}

/// The home whose daemon was the last one to start, of all that are in the log.
pub(super) async fn newest_home(log: &Log) -> Result<Option<HomeId>, LogError> {
    let mut newest = None;
    // The ids of lives sort by the time at which they began.
    log.each_head(KIND, None, |head| {
        let home_id = body_of(log, &head).and_then(|body| body.home_id.parse().ok());
        newest = home_id.or(newest);
    })
    .await?;
    Ok(newest)
}

async fn mark_crashed(
    log: &Log,
    seen: &StoredHead,
    body: &Body,
    found_by: BootId,
) -> Result<(), LogStartError> {
    let write = Write {
        stream: seen.stream.clone(),
        expected: seen.version,
        head: Some(head(CRASHED, body)),
        events: vec![event("crashed", &json!({ "found_by": found_by.to_string() }))],
    };
    match log.commit(Commit::one(write)).await {
        Ok(_) => Ok(()),
        // Somebody has written it meanwhile, and so knows more than we saw.
        Err(CommitError::Conflict { stream, .. }) => {
            tracing::warn!(%stream, "the end of an earlier daemon was written down by somebody else");
            Ok(())
        }
        Err(error) => Err(LogStartError::Write(error)),
    }
}

impl OpenBoot {
    async fn make(
        log: &Log,
        home_id: HomeId,
        boot_id: BootId,
        started_at: SystemTime,
    ) -> Result<(Self, protocol::Boot), LogStartError> {
        let stream =
            StreamId::new(&format!("{KIND}/{boot_id}")).map_err(|bad| LogStartError::Write(bad.into()))?;
        let body = Body {
            home_id: home_id.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at_ms: unix_ms(started_at),
            ended_at_ms: None,
            cause: None,
        };
        let write = Write {
            stream: stream.clone(),
            expected: Version::NONE,
            head: Some(head(RUNNING, &body)),
            events: vec![event("started", &json!(body))],
        };
        let committed = log
            .commit(Commit::one(write))
            .await
            .map_err(LogStartError::Write)?;
        let version = committed.first().map_or(Version::NONE, |made| made.version);
        let wire = wire(&boot_id.to_string(), protocol::BootState::Running, &body);
        let log = log.clone();
        Ok((
            Self {
                log,
                stream,
                version,
                body,
            },
            wire,
        ))
    }

    /// A place to leave notes, and the work of writing them down.
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
                // Nobody else writes to this stream: it is a note of ours whose answer was lost.
                self.version = actual.version;
                written = self.write(&note).await;
            }
            // The daemon lives and ends all the same. Without the last note, it will be taken for crashed.
            if let Err(error) = written {
                tracing::warn!(%error, ?note, "a note on this life could not be written");
            }
        }
    }

    async fn write(&mut self, note: &Note) -> Result<(), CommitError> {
        let write = self.write_of(note);
        let committed = self.log.commit(Commit::one(write)).await?;
        if let Some(made) = committed.first() {
            self.version = made.version;
        }
        Ok(())
    }

    fn write_of(&mut self, note: &Note) -> Write {
        let (head, event) = match note {
            Note::Ready { address } => (None, event("ready", &json!({ "address": address }))),
            Note::Draining { cause } => {
                self.body.cause = Some(cause.clone());
                let happened = event("draining", &json!({ "cause": cause }));
                (Some(head(RUNNING, &self.body)), happened)
            }
            Note::Stopped { cut_connections } => {
                self.body.ended_at_ms = Some(now_ms());
                let happened = event("stopped", &json!({ "cut_connections": cut_connections }));
                (Some(head(STOPPED, &self.body)), happened)
            }
        };
        Write {
            stream: self.stream.clone(),
            expected: self.version,
            head,
            events: vec![event],
        }
    }
}

fn head(status: &str, body: &Body) -> Head {
    Head {
        kind: Arc::from(KIND),
        status: Arc::from(status),
        body: json!(body).to_string().into_bytes().into(),
        blobs: Vec::new(),
    }
}

fn event(kind: &str, body: &Value) -> NewEvent {
    NewEvent {
        kind: Arc::from(kind),
        body: body.to_string().into_bytes().into(),
        blobs: Vec::new(),
    }
}

/// Why the head of a life cannot be read; nothing if it can be, or is no such head.
pub(super) fn unreadable_head(_stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    let read = serde_json::from_slice::<Body>(&head.body).err();
    read.filter(|_| &*head.kind == KIND)
}

fn body_of(log: &Log, head: &StoredHead) -> Option<Body> {
    log.readable(head, serde_json::from_slice(&head.head.body))
}

fn id_of(stream: &StreamId) -> &str {
    stream
        .as_str()
        .strip_prefix("boot/")
        .unwrap_or_else(|| stream.as_str())
}

fn to_wire(head: &StoredHead, body: &Body) -> protocol::Boot {
    let state = match &*head.head.status {
        RUNNING => protocol::BootState::Running,
        STOPPED => protocol::BootState::Stopped,
        _ => protocol::BootState::Crashed,
    };
    wire(id_of(&head.stream), state, body)
}

fn wire(id: &str, state: protocol::BootState, body: &Body) -> protocol::Boot {
    let time = |ms: u64| times::rfc3339(UNIX_EPOCH + Duration::from_millis(ms));
    protocol::Boot {
        id: id.to_owned(),
        state,
        pid: body.pid,
        version: body.version.clone(),
        started_at: time(body.started_at_ms),
        ended_at: body.ended_at_ms.map(time),
        cause: body.cause.clone(),
    }
}
