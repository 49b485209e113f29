//! Errors of sessions.

use eventlog::{BlobError, CommitError, LogError, MaybeConflict, ReadError, Unreadable};
use plans::PlanError;
use protocol::{PermissionId, PlanId, SessionId, TurnId, TurnState};

use crate::session::Session;

/// A request to the service was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// There is no such turn.
    #[error("there is no turn {0}")]
    TurnNotFound(TurnId),
    /// No agent has this name.
    #[error("there is no agent `{name}`")]
    AgentNotFound {
        /// The name.
        name: String,
        /// The agents that exist.
        known: Vec<String>,
    },
    /// The agent isn't ready.
    #[error("the agent `{name}` is not ready: {missing}")]
    AgentNotReady {
        /// The agent.
        name: String,
        /// What is missing.
        missing: String,
    },
    /// A turn is already running.
    #[error("a turn is already running in {session}")]
    TurnActive {
        /// The session.
        session: SessionId,
        /// The running turn.
        turn: TurnId,
    },
    /// No turn is running, or not the one the caller named.
    #[error("{turn} is not running in {session}")]
    TurnNotActive {
        /// The session.
        session: SessionId,
        /// The turn that was named.
        turn: TurnId,
        /// Its state.
        state: TurnState,
    },
    /// The turn is no longer queued.
    #[error("{turn} is no longer queued: it is {}", state.name())]
    TurnNotQueued {
        /// The turn.
        turn: TurnId,
        /// Its state.
        state: TurnState,
    },
    /// The daemon that runs the turn is alive.
    #[error("{turn} is not stale: the daemon that runs it is alive")]
    NotStale {
        /// The turn.
        turn: TurnId,
    },
    /// The session has changed since the caller read it.
    #[error("{} has changed: it is at version {}", current.id, current.version)]
    Stale {
        /// Its current state.
        current: Box<Session>,
    },
    /// The session is archived.
    #[error("{0} is archived")]
    Archived(SessionId),
    /// A turn is running or queued, so the session can't be removed.
    #[error("{0} is in use")]
    InUse(SessionId),
    /// The session has forks, which share its turns.
    #[error("{session} has {forks} forks, which share its turns")]
    HasForks {
        /// The session.
        session: SessionId,
        /// The number of forks.
        forks: u64,
    },
    /// The queue of the session is full.
    #[error("{session} already has {limit} queued prompts")]
    QueueFull {
        /// The session.
        session: SessionId,
        /// The limit.
        limit: usize,
    },
    /// No such question is open.
    #[error("there is no open question {permission} in {session}")]
    PermissionNotFound {
        /// The session.
        session: SessionId,
        /// The question that was named.
        permission: PermissionId,
    },
    /// The directory can't be used.
    #[error("the directory {why}")]
    Directory {
        /// What is wrong with it.
        why: String,
    },
    /// A prompt, title or script is invalid.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// The plan can't be used.
    #[error("{plan} cannot be used")]
    Plan {
        /// The plan.
        plan: PlanId,
        /// Why.
        #[source]
        source: Box<PlanError>,
    },
    /// The idempotency key belongs to another prompt.
    #[error("the idempotency key was used for another prompt")]
    KeyReused {
        /// The turn of that prompt.
        turn: TurnId,
    },
    /// A head can't be read.
    #[error("the stored state of `{stream}` cannot be read")]
    Unreadable {
        /// The stream.
        stream: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The daemon is shutting down.
    #[error("the daemon is shutting down and accepts no more prompts")]
    Closed,
    /// The log can't be read.
    #[error("the log cannot be read")]
    Log(#[from] LogError),
    /// The log refused a commit.
    #[error("the log refused a commit")]
    Commit(#[from] CommitError),
    /// Content can't be stored or read.
    #[error("content cannot be stored or read")]
    Blob(#[from] BlobError),
}

impl SessionError {
    /// Whether a retry may succeed a little later: the log failed, or every attempt conflicted.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Log(error) | Self::Commit(CommitError::Log(error)) => {
                !matches!(error, LogError::Closed | LogError::Corrupt(_))
            }
            Self::Stale { .. } => true,
            _ => false,
        }
    }
}

impl MaybeConflict for SessionError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Commit(error) if error.is_conflict())
    }
}

impl From<ReadError> for SessionError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Log(error) => Self::Log(error),
            ReadError::Unreadable(unreadable) => unreadable.into(),
        }
    }
}

impl From<Unreadable> for SessionError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Unreadable {
            stream: unreadable.stream.to_string(),
            source: unreadable.source,
        }
    }
}

impl From<eventlog::BadName> for SessionError {
    fn from(bad: eventlog::BadName) -> Self {
        Self::Commit(bad.into())
    }
}
