//! Writes the stream of a turn.
//!
//! **Invariant:** each commit names the version that the previous one produced. So once another daemon has ended the
//! turn, the next commit is refused, and so is every later one.

use std::sync::Arc;

use eventlog::{Commit, CommitError, NewEvent, UnsettledEvents, Version, Write};
use kernel::{CancellationToken, Cause};
use protocol::TurnId;
use tokio::sync::{mpsc, oneshot};

use crate::error::SessionError;
use crate::event::{TurnEvent, to_log};
use crate::inner::SessionsInner;
use crate::observe::Observed;
use crate::sink::Entry;
use crate::streams::turn_stream;
use crate::turn::Turn;

/// The most events in one commit. Other writers wait for it.
const COMMIT_EVENTS: usize = 512;
/// Roughly how many bytes go into one commit.
const COMMIT_BYTES: usize = 512 * 1024;
/// Roughly how many bytes of a turn may be acknowledged but not on disk. They are kept in memory until then.
const UNSETTLED_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) enum Recorded {
    /// Everything is written, and the turn is at this version. The log may still roll back the last events.
    Whole(Version, UnsettledEvents),
    /// The turn no longer belongs to this daemon.
    TakenAway,
    /// The log failed. Everything after this version, or shortly before it, is lost.
    Failed { version: Version, error: CommitError },
}

/// Writes entries until the queue is closed. If they can no longer be written, the token of the turn is cancelled.
pub(crate) async fn record(
    shared: Arc<SessionsInner>,
    turn: TurnId,
    mut version: Version,
    mut entries: mpsc::Receiver<Entry>,
    token: CancellationToken,
) -> Recorded {
    let Ok(stream) = turn_stream(turn) else {
        return Recorded::TakenAway;
    };
    let lease = shared.tenure.scope();
    let mut gathered = Gathered::default();
    let mut unsettled = UnsettledEvents::default();
    let mut observed = Observed::default();
    let mut waiting = Vec::with_capacity(COMMIT_EVENTS);
    loop {
        let count = entries.recv_many(&mut waiting, COMMIT_EVENTS).await;
        let mut is_closed = count == 0;
        for entry in waiting.drain(..) {
            match entry {
                Entry::Event(event) => {
                    if let Some(observer) = shared.observer.get() {
                        observed.tell(&**observer, &event);
                    }
                    if let Err(error) = gathered.take(&event) {
                        tracing::warn!(%error, %turn, "could not write the output of an agent");
                        token.cancel(Cause::new("the log", "it refused a write"));
                        return Recorded::Failed { version, error };
                    }
                }
                Entry::Flush(done) => gathered.flushes.push(done),
                Entry::Close => is_closed = true,
            }
        }
        let before = gathered.events.len();
        while let Some(commit) = gathered.next_commit(&stream, version, unsettled.bytes()) {
            let durability = commit.durability;
            let events = commit
                .writes
                .iter()
                .flat_map(|write| write.events.clone())
                .collect();
            let committed = shared.log.commit_through(commit, &shared.clock, &lease);
            match committed.await {
                Ok(committed) => {
                    if let Some(committed) = committed.first() {
                        version = committed.version;
                        unsettled.acknowledged(durability, committed.last_sequence, events);
                    }
                }
                // A server has crashed, or the disk was full.
                Err(CommitError::RolledBack {
                    actual: Some(actual), ..
                }) => {
                    tracing::warn!(%turn, "the log has rolled back output of an agent; writing it again");
                    version = actual.version;
                    gathered.again(unsettled.after(actual.last_sequence), events);
                    unsettled = UnsettledEvents::default();
                }
                Err(CommitError::Conflict { .. } | CommitError::RolledBack { actual: None, .. }) => {
                    token.cancel(Cause::new("the log", "the turn is no longer this daemon's"));
                    return Recorded::TakenAway;
                }
                Err(error) => {
                    tracing::warn!(%error, %turn, "could not write the output of an agent");
                    token.cancel(Cause::new("the log", "it refused a write"));
                    return Recorded::Failed { version, error };
                }
            }
        }
        if let Some(observer) = shared.observer.get() {
            observer.wrote(before);
        }
        for done in gathered.flushes.drain(..) {
            // The caller may be gone.
            done.send(()).ok();
        }
        if is_closed {
            return Recorded::Whole(version, unsettled);
        }
    }
}

/// Rewrites the events of a turn that the log has rolled back. Returns the resulting version of the turn.
pub(crate) async fn write_again(
    shared: &SessionsInner,
    current: &Turn,
    unsettled: &UnsettledEvents,
) -> Result<Version, SessionError> {
    let events = unsettled.after(current.last_sequence);
    if events.is_empty() {
        return Ok(current.version);
    }
    tracing::warn!(turn = %current.id, "the log has rolled back output of an agent; writing it again");
    let commit = Commit::one(current.append(&events)?);
    let lease = shared.tenure.scope();
    let committed = shared.log.commit_through(commit, &shared.clock, &lease).await?;
    Ok(committed.first().map_or(current.version, |made| made.version))
}

#[derive(Debug, Default)]
struct Gathered {
    events: std::collections::VecDeque<(NewEvent, Wanted)>,
    flushes: Vec<oneshot::Sender<()>>,
}

/// How soon an event must be on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wanted {
    /// A piece of growing output. A crash may lose the last pieces.
    Soon,
    /// It must be on disk before the turn continues.
    Now,
}

impl Gathered {
    fn take(&mut self, event: &TurnEvent) -> Result<(), CommitError> {
        let wanted = if event.is_delta() {
            Wanted::Soon
        } else {
            Wanted::Now
        };
        self.events.push_back((to_log(event)?, wanted));
        Ok(())
    }

    /// Queues events that were rolled back, and those of the refused commit, ahead of all others.
    fn again(&mut self, taken_back: Vec<NewEvent>, refused: Vec<NewEvent>) {
        for event in taken_back.into_iter().chain(refused).rev() {
            self.events.push_front((event, Wanted::Now));
        }
    }

    /// The next commit; `None` when everything is written.
    fn next_commit(
        &mut self,
        stream: &eventlog::StreamId,
        version: Version,
        unsettled_bytes: usize,
    ) -> Option<Commit> {
        let (mut events, mut bytes, mut wanted) = (Vec::new(), 0, Wanted::Soon);
        while let Some((event, _)) = self.events.front() {
            if !events.is_empty()
                && (events.len() >= COMMIT_EVENTS || bytes + event.body.len() > COMMIT_BYTES)
            {
                break;
            }
            let Some((event, of_it)) = self.events.pop_front() else {
                break;
            };
            bytes += event.body.len();
            if of_it == Wanted::Now {
                wanted = Wanted::Now;
            }
            events.push(event);
        }
        if events.is_empty() {
            return None;
        }
        let commit = Commit::one(Write {
            stream: stream.clone(),
            expected: version,
            head: None,
            events,
        });
        let is_flush = self.events.is_empty() && !self.flushes.is_empty();
        let is_too_much = unsettled_bytes > UNSETTLED_BYTES;
        match wanted {
            Wanted::Soon if !is_flush && !is_too_much => Some(commit.relaxed()),
            Wanted::Soon | Wanted::Now => Some(commit),
        }
    }
}
