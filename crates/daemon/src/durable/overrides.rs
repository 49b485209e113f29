//! Breakers that are held by hand: one task owns them, and takes requests one by one.
//!
//! 1. A change is committed, then applied, then answered. What was acknowledged is on disk.
//! 2. Only this task moves a breaker into or out of a state that is held by hand, so between the commit and the
//!    application nobody can: memory and log say the same whenever a request is not under way.
//! 3. A change that is refused (not known, moved on, no room) has committed nothing.
//! 4. A breaker that decides by itself can move at any time. A reset that names its generation is therefore
//!    applied first and written down then: by both, before and after, it is not held by hand, so that invariant 2
//!    stands; and a reset that came too late has written nothing.
//! 5. Whoever asks and goes away changes nothing: what is in the queue is carried out.

use eventlog::{COMMIT_LIMIT_ITEMS, Commit, CommitError, Health, Log, LogError, StreamId, Version, Write};
use kernel::{CircuitBreaker, CircuitSnapshot, Generation, HomeId, RequestId, Scope, StaleCircuit};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::closing;
use super::history::{self, BreakerHistory, Transition};
use crate::access::Transport;

/// How many changes may wait. People make them by hand; beyond that, whoever asks waits for room.
const QUEUE_CHANGES: usize = 64;
/// How many breakers are reset in one commit: a write and an event for each.
const BREAKERS_PER_COMMIT: usize = COMMIT_LIMIT_ITEMS / 2;
/// How often a commit is tried whose stream was moved by somebody else. Nobody else should; once is enough to
/// catch up with a commit of ours whose answer was lost.
const ATTEMPTS: usize = 3;

/// Who asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) request_id: RequestId,
    pub(crate) transport: Transport,
}

/// A change to one breaker by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Hold it open.
    ForceOpen,
    /// Hold it closed.
    ForceClosed,
    /// Close it, and let it decide by itself.
    Reset,
    /// The same, if it is still what the caller saw.
    ResetIf(Generation),
}

/// A change was not made.
#[derive(Debug, Error)]
pub(crate) enum OverrideError {
    #[error("no breaker has this name")]
    Unknown,
    #[error("the breaker has moved on")]
    Moved(Box<CircuitSnapshot>),
    #[error("there is no room to keep track of another breaker")]
    Full,
    #[error("the change cannot be written down")]
    Log(#[source] LogError),
    #[error("the change was not accepted by the log")]
    Commit(#[source] CommitError),
    #[error("the daemon takes no more changes")]
    Closed,
}

impl From<CommitError> for OverrideError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Log(error) => Self::Log(error),
            error => Self::Commit(error),
        }
    }
}

impl From<LogError> for OverrideError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

enum Request {
    One {
        name: String,
        change: Change,
        who: Who,
        reply: oneshot::Sender<Result<CircuitSnapshot, OverrideError>>,
    },
    All {
        who: Who,
        reply: oneshot::Sender<Result<usize, OverrideError>>,
    },
}

/// The way to the task. Clones lead to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    requests: mpsc::Sender<Request>,
}

impl Overrides {
    /// A way to the task, and the work of the task.
    pub(crate) fn new(
        log: Log,
        home_id: HomeId,
        breakers: CircuitBreaker,
        closing: Scope,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, receiver) = mpsc::channel(QUEUE_CHANGES);
        let owner = Owner {
            log,
            home_id,
            breakers,
        };
        (Self { requests: sender }, owner.run(receiver, closing))
    }

    /// Changes one breaker, durably, and shows it as it is then. *Cancel safety*: dropped half-way, the change may
    /// or may not be made.
    pub(crate) async fn change(
        &self,
        name: &str,
        change: Change,
        who: Who,
    ) -> Result<CircuitSnapshot, OverrideError> {
        let name = name.to_owned();
        self.ask(|reply| Request::One {
            name,
            change,
            who,
            reply,
        })
        .await
    }

    /// Resets all known breakers, and says how many there are. *Cancel safety*: dropped half-way, it may or may
    /// not be done.
    pub(crate) async fn reset_all(&self, who: Who) -> Result<usize, OverrideError> {
        self.ask(|reply| Request::All { who, reply }).await
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, OverrideError>>) -> Request,
    ) -> Result<T, OverrideError> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(request(reply))
            .await
            .map_err(|_| OverrideError::Closed)?;
        answer.await.map_err(|_| OverrideError::Closed)?
    }
}

/// The one who makes changes.
struct Owner {
    log: Log,
    home_id: HomeId,
    breakers: CircuitBreaker,
}

impl Owner {
    async fn run(self, mut requests: mpsc::Receiver<Request>, closing: Scope) {
        while let Some(request) = closing::next(&mut requests, &closing).await {
            // Whoever asked may have gone away; the change stands.
            match request {
                Request::One {
                    name,
                    change,
                    who,
                    reply,
                } => drop(reply.send(self.change(&name, change, who).await)),
                Request::All { who, reply } => drop(reply.send(self.reset_all(who).await)),
            }
        }
    }

    async fn change(&self, name: &str, change: Change, who: Who) -> Result<CircuitSnapshot, OverrideError> {
        let transition = match change {
            Change::ForceOpen => Transition::ForcedOpen,
            Change::ForceClosed => Transition::ForcedClosed,
            Change::Reset | Change::ResetIf(_) => Transition::Reset,
        };
        let before = self.breakers.get(name);
        if transition == Transition::Reset && before.is_none() {
            return Err(OverrideError::Unknown);
        }
        // While it is held, the circuit stays known. If it is not known even so, there is no room.
        let held = self.breakers.circuit(name);
        let Some(before) = self.breakers.get(name) else {
            return Err(OverrideError::Full);
        };
        match change {
            Change::ResetIf(seen) if before.generation != seen => {
                return Err(OverrideError::Moved(Box::new(before)));
            }
            Change::ResetIf(seen) if history::held_by_hand(&before).is_none() => {
                // Invariant 4. With a log that is known to refuse, memory is not touched at all.
                if let Health::Refusing { reason } = self.log.health() {
                    return Err(OverrideError::Log(reason));
                }
                self.breakers.reset_if(name, seen).map_err(stale)?;
                self.commit(&[(name, transition)], who).await?;
            }
            _ => {
                self.commit(&[(name, transition)], who).await?;
                let applied = history::apply(&self.breakers, name, transition);
                assert!(applied, "a circuit that is held is known");
            }
        }
        let after = self.breakers.get(name).ok_or(OverrideError::Unknown);
        drop(held);
        after
    }

    async fn reset_all(&self, who: Who) -> Result<usize, OverrideError> {
        let circuits = self.breakers.snapshot().circuits;
        let names: Vec<&str> = circuits.iter().map(|circuit| &*circuit.name).collect();
        // One commit as a rule; a table that is larger than a commit takes a few, and each one is applied as soon
        // as it is made.
        for names in names.chunks(BREAKERS_PER_COMMIT) {
            let changes: Vec<_> = names.iter().map(|name| (*name, Transition::Reset)).collect();
            self.commit(&changes, who).await?;
            if names.len() == circuits.len() {
                self.breakers.reset_all();
            } else {
                for name in names {
                    self.breakers.reset(name);
                }
            }
        }
        Ok(circuits.len())
    }

    /// Writes changes down, all or none.
    async fn commit(&self, changes: &[(&str, Transition)], who: Who) -> Result<(), OverrideError> {
        for _ in 1..ATTEMPTS {
            match self.try_commit(changes, who).await {
                Err(OverrideError::Commit(CommitError::Conflict { stream, .. })) => {
                    tracing::warn!(%stream, "a breaker was changed in the log by somebody else");
                }
                Err(OverrideError::Log(error)) => {
                    self.follow_the_log(changes).await;
                    return Err(OverrideError::Log(error));
                }
                done => return done,
            }
        }
        self.try_commit(changes, who).await
    }

    /// After a failure it is not always known whether a commit was made. The log knows, if it can be read.
    async fn follow_the_log(&self, changes: &[(&str, Transition)]) {
        for (name, _) in changes {
            let found = match self.stream(name) {
                Ok(stream) => self.log.head(&stream).await.map_err(OverrideError::Log),
                Err(error) => Err(error),
            };
            match found {
                Ok(Some(head)) => history::agree(&self.breakers, name, &head.head.status),
                Ok(None) => history::agree(&self.breakers, name, Transition::Reset.status()),
                Err(error) => {
                    tracing::error!(name, %error, "it is not known whether a breaker is held by hand")
                }
            }
        }
    }

    async fn try_commit(&self, changes: &[(&str, Transition)], who: Who) -> Result<(), OverrideError> {
        let mut writes = Vec::with_capacity(changes.len());
        for (name, transition) in changes {
            let stream = self.stream(name)?;
            let head = self.log.head(&stream).await?;
            writes.push(Write {
                stream,
                expected: head.map_or(Version::NONE, |head| head.version),
                head: Some(transition.head(name)),
                events: vec![transition.event(who)],
            });
        }
        if !writes.is_empty() {
            self.log.commit(Commit::all(writes)).await?;
        }
        Ok(())
    }

    fn stream(&self, name: &str) -> Result<StreamId, OverrideError> {
        let history = BreakerHistory::of(self.home_id, name);
        history
            .map(|history| history.stream)
            .map_err(|bad| OverrideError::Commit(bad.into()))
    }
}

fn stale(error: StaleCircuit) -> OverrideError {
    match error {
        StaleCircuit::Unknown => OverrideError::Unknown,
        StaleCircuit::Moved(current) => OverrideError::Moved(Box::new(current)),
    }
}
