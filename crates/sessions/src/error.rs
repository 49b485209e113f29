//! What can go wrong with sessions.

use eventlog::{BlobError, CommitError, LogError};
use plans::PlanError;
use protocol::{PermissionId, PlanId, SessionId, TurnId, TurnState};

use crate::session::Session;

/// A request to the service was refused, or failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// There is no such turn.
    #[error("there is no turn {0}")]
    TurnNotFound(TurnId),
    /// There is no such agent.
    #[error("there is no agent `{name}`")]
    AgentNotFound {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The agent cannot be asked.
    #[error("the agent `{name}` cannot be asked: {missing}")]
    AgentNotReady {
        /// The agent.
        name: String,
        /// What is missing.
        missing: String,
    },
    /// A turn runs already.
    #[error("a turn runs already in {session}")]
    TurnActive {
        /// The session.
        session: SessionId,
        /// The turn that runs.
        turn: TurnId,
    },
    /// No turn runs, or another one than the caller saw.
    #[error("{turn} does not run in {session}")]
    TurnNotActive {
        /// The session.
        session: SessionId,
        /// What was named.
        turn: TurnId,
        /// What it is.
        state: TurnState,
    },
    /// The turn does not wait any more.
    #[error("{turn} does not wait any more: it is {}", state.name())]
    TurnNotQueued {
        /// The turn.
        turn: TurnId,
        /// What it is.
        state: TurnState,
    },
    /// The turn is owned by somebody who is alive.
    #[error("{turn} is not stale: its owner is there")]
    NotStale {
        /// The turn.
        turn: TurnId,
    },
    /// The session is at another version than the caller saw.
    #[error("{} has moved: it is at version {}", current.id, current.version)]
    Stale {
        /// As it is.
        current: Box<Session>,
    },
    /// The session was put away.
    #[error("{0} is archived")]
    Archived(SessionId),
    /// A turn runs or waits, so the session cannot be removed.
    #[error("{0} is in use")]
    InUse(SessionId),
    /// Others share its turns.
    #[error("{session} has {forks} forks, which share its turns")]
    HasForks {
        /// The session.
        session: SessionId,
        /// How many.
        forks: u64,
    },
    /// Too many prompts wait.
    #[error("{limit} prompts wait already in {session}")]
    QueueFull {
        /// The session.
        session: SessionId,
        /// How many may wait.
        limit: usize,
    },
    /// No such question is open.
    #[error("there is no open question {permission} in {session}")]
    PermissionNotFound {
        /// The session.
        session: SessionId,
        /// What was named.
        permission: PermissionId,
    },
    /// The directory that a session is to work on cannot be used.
    #[error("the directory {why}")]
    Directory {
        /// What is wrong with it.
        why: String,
    },
    /// What was given cannot be a prompt, a title, or a script.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// The plan cannot be worked in.
    #[error("{plan} cannot be worked in")]
    Plan {
        /// The plan.
        plan: PlanId,
        /// Why.
        #[source]
        source: Box<PlanError>,
    },
    /// Another prompt was sent with the same key.
    #[error("the idempotency key was used for another prompt")]
    KeyReused {
        /// Its turn.
        turn: TurnId,
    },
    /// A head cannot be read.
    #[error("what is kept of `{stream}` cannot be read")]
    Unreadable {
        /// Its stream.
        stream: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The daemon ends.
    #[error("the daemon takes no more prompts")]
    Closed,
    /// The log cannot be read.
    #[error("the log cannot be read")]
    Log(#[from] LogError),
    /// The log refused a commit.
    #[error("the log refused a commit")]
    Commit(#[from] CommitError),
    /// A content cannot be kept or read.
    #[error("a content cannot be kept or read")]
    Blob(#[from] BlobError),
}

impl SessionError {
    /// Whether the same may go well a little later: the log failed, or others were always faster.
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

impl From<eventlog::BadName> for SessionError {
    fn from(bad: eventlog::BadName) -> Self {
        Self::Commit(bad.into())
    }
}
