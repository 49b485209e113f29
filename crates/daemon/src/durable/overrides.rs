//! Breakers that are held by hand. One task owns them and handles requests one by one.
//!
//! 1. A change is committed, then applied, then answered. So what was acknowledged is on disk.
//! 2. Only this task moves a breaker into or out of a state that is held by hand. So between requests, memory and log
//!    agree. Daemons that share the log share what is held: this task also applies what the others commit, shortly after.
//!    Before a change, the breaker is brought to the state in the log, and the change is committed on that version.
//! 3. A change that is refused (unknown, changed, no room) has committed nothing.
//! 4. An automatic breaker can change at any time. So a reset that names its generation is applied first and committed
//!    then. The breaker isn't held by hand before or after, so invariant 2 holds, and a reset that came too late has
//!    committed nothing.
//! 5. A request in the queue is carried out even if its caller goes away.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{
    COMMIT_LIMIT_ITEMS, Commit, CommitError, ConflictRetries, Health, Log, LogError, MaybeConflict, StreamId,
    Version,
};
use kernel::{CircuitBreaker, CircuitSnapshot, Clock, Deadline, Generation, Scope, StaleCircuit};
use protocol::RequestId;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::closing;
use super::history::{self, BreakerHistory, Holder, Transition};
use crate::access::Transport;

/// How many changes may wait. Users make them by hand; further callers wait.
const QUEUE_CHANGES: usize = 64;
/// How many breakers are reset in one commit: a write and an event for each.
const BREAKERS_PER_COMMIT: usize = COMMIT_LIMIT_ITEMS / 2;
/// How many times a change is tried if another daemon changes the breaker at the same moment.
const ATTEMPTS: usize = 3;

/// How often to read what other daemons hold without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) request_id: RequestId,
    pub(crate) transport: Transport,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Hold it open.
    ForceOpen,
    /// Hold it closed.
    ForceClosed,
    /// Close it, and make it automatic again.
    Reset,
    /// The same, if it is still at the generation that the caller saw.
    ResetIf(Generation),
}

/// Why a change wasn't made.
#[derive(Debug, Error)]
pub(crate) enum OverrideError {
    #[error("no breaker has this name")]
    Unknown,
    #[error("the breaker has changed")]
    Moved(Box<CircuitSnapshot>),
    #[error("there is no room to keep track of another breaker")]
    Full,
    #[error("the change cannot be stored")]
    Log(#[source] LogError),
    #[error("the change was not accepted by the log")]
    Commit(#[source] CommitError),
    #[error("the daemon is shutting down and accepts no more changes")]
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

impl MaybeConflict for OverrideError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Commit(error) if error.is_conflict())
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

/// A handle to the task. Clones refer to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    requests: mpsc::Sender<Request>,
}

impl Overrides {
    /// Returns a handle, and the task to spawn.
    pub(crate) fn new(
        log: Log,
        holder: Holder,
        breakers: CircuitBreaker,
        clock: Arc<dyn Clock>,
        closing: Scope,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, receiver) = mpsc::channel(QUEUE_CHANGES);
        let owner = Owner {
            log,
            holder,
            breakers,
            clock,
        };
        (Self { requests: sender }, owner.run(receiver, closing))
    }

    /// Changes one breaker, durably, and returns its new state. *Cancel safety*: if the future is dropped, the change may
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

    /// Resets all known breakers, and returns their number. *Cancel safety*: if the future is dropped, they may or may not
    /// be reset.
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

struct Owner {
    log: Log,
    holder: Holder,
    breakers: CircuitBreaker,
    clock: Arc<dyn Clock>,
}

impl Owner {
    async fn run(self, mut requests: mpsc::Receiver<Request>, closing: Scope) {
        let mut moves = self.log.changes(history::KIND);
        loop {
            let patience = match self.holder {
                // The log isn't shared.
                Holder::Home(_) => Deadline::never(),
                Holder::Everybody => Deadline::after(&self.clock, LOOK_EVERY),
            };
            tokio::select! {
                biased;
                request = closing::next(&mut requests, &closing) => match request {
                    Some(request) => self.serve(request).await,
                    None => return,
                },
                // A hint and a timeout are both reasons to read.
                _ = moves.next(patience, &closing), if self.follows(&closing) => {
                    let followed = history::follow(&self.log, self.holder, &self.breakers).await;
                    if let Err(error) = followed {
                        tracing::debug!(%error, "could not read which breakers others hold by hand");
                    }
                }
            }
        }
    }

    fn follows(&self, closing: &Scope) -> bool {
        self.holder == Holder::Everybody && !closing.is_cancelled()
    }

    async fn serve(&self, request: Request) {
        // The caller may be gone; the change stands.
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

    async fn change(&self, name: &str, change: Change, who: Who) -> Result<CircuitSnapshot, OverrideError> {
        let mut retries = ConflictRetries::new(ATTEMPTS);
        loop {
            let changed = self.try_change(name, &change, who).await;
            if !retries.again(&changed) {
                return changed;
            }
        }
    }

    async fn try_change(
        &self,
        name: &str,
        change: &Change,
        who: Who,
    ) -> Result<CircuitSnapshot, OverrideError> {
        let transition = match change {
            Change::ForceOpen => Transition::ForcedOpen,
            Change::ForceClosed => Transition::ForcedClosed,
            Change::Reset | Change::ResetIf(_) => Transition::Reset,
        };
        let seen_version = self.look(name).await?;
        let before = self.breakers.get(name);
        if transition == Transition::Reset && before.is_none() {
            return Err(OverrideError::Unknown);
        }
        // While this handle exists, the circuit stays known. If it isn't known even so, there is no room.
        let held = self.breakers.circuit(name);
        let Some(before) = self.breakers.get(name) else {
            return Err(OverrideError::Full);
        };
        match change {
            Change::ResetIf(seen) if before.generation != *seen => {
                return Err(OverrideError::Moved(Box::new(before)));
            }
            Change::ResetIf(seen) if history::held_by_hand(&before).is_none() => {
                // Invariant 4. If the log is known to refuse writes, memory isn't changed at all.
                if let Health::Refusing { reason } = self.log.health() {
                    return Err(OverrideError::Log(reason));
                }
                self.breakers.reset_if(name, *seen).map_err(stale)?;
                match self.commit(&[(name, transition, seen_version)], who).await {
                    // Another daemon has changed it at the same moment, and its change counts.
                    Err(error) if error.is_conflict() => {
                        self.look(name).await?;
                    }
                    done => done?,
                }
            }
            _ => {
                self.commit(&[(name, transition, seen_version)], who).await?;
                let applied = history::apply(&self.breakers, name, transition);
                assert!(applied, "a circuit that is held is known");
            }
        }
        let after = self.breakers.get(name).ok_or(OverrideError::Unknown);
        drop(held);
        after
    }

    /// Brings a breaker to the state in the log, and returns the version of that state.
    async fn look(&self, name: &str) -> Result<Version, OverrideError> {
        let head = self.log.head(&self.stream(name)?).await?;
        let status = head.as_ref().map(|head| &*head.head.status);
        history::agree(&self.breakers, name, status.unwrap_or(Transition::Reset.status()));
        Ok(head.map_or(Version::NONE, |head| head.version))
    }

    async fn reset_all(&self, who: Who) -> Result<usize, OverrideError> {
        let circuits = self.breakers.snapshot().circuits;
        let names: Vec<&str> = circuits.iter().map(|circuit| &*circuit.name).collect();
        // Usually one commit. If there are too many breakers, each commit is applied as soon as it is made.
        for names in names.chunks(BREAKERS_PER_COMMIT) {
            self.commit_resets(names, who).await?;
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

    /// Makes all of them automatic, whatever another daemon does at the same moment.
    async fn commit_resets(&self, names: &[&str], who: Who) -> Result<(), OverrideError> {
        let mut retries = ConflictRetries::new(ATTEMPTS);
        loop {
            let mut changes = Vec::with_capacity(names.len());
            for name in names {
                changes.push((*name, Transition::Reset, self.look(name).await?));
            }
            let committed = self.commit(&changes, who).await;
            if !retries.again(&committed) {
                return committed;
            }
        }
    }

    /// Commits changes, all or none, each on the version that was seen.
    async fn commit(&self, changes: &[(&str, Transition, Version)], who: Who) -> Result<(), OverrideError> {
        let mut writes = Vec::with_capacity(changes.len());
        for (name, transition, expected) in changes {
            writes.push(transition.write(self.stream(name)?, *expected, name, Some(who))?);
        }
        if writes.is_empty() {
            return Ok(());
        }
        match self
            .log
            .commit(Commit::all(writes))
            .await
            .map_err(OverrideError::from)
        {
            Err(OverrideError::Log(error)) => {
                self.follow_the_log(changes).await;
                Err(OverrideError::Log(error))
            }
            done => done.map(drop),
        }
    }

    /// After a failure, it may be unknown whether the commit was made, so the log is read.
    async fn follow_the_log(&self, changes: &[(&str, Transition, Version)]) {
        for (name, ..) in changes {
            if let Err(error) = self.look(name).await {
                tracing::error!(name, %error, "it is unknown whether a breaker is held by hand");
            }
        }
    }

    fn stream(&self, name: &str) -> Result<StreamId, OverrideError> {
        let history = BreakerHistory::of(self.holder, name);
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
