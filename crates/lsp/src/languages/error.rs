//! Why a question about code has no answer.

use lifecycle::{LifecycleError, ServerGeneration};
use std::{path::PathBuf, sync::Arc};

use crate::{
    client::RequestError,
    documents::{DocumentError, SentError},
    languages::{disk::ReadTextError, view::ServerView, workspace::PathError},
    queries::{QueryError, ReadyState},
    servers::{ConfigNote, MissingServer, WorkspaceError},
};

/// A question about code was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Text(#[from] ReadTextError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("no language server is configured for `{}`", path.display())]
    NoServer { path: PathBuf, notes: Vec<ConfigNote> },
    #[error("`{server}` is not a language server for `{}`", path.display())]
    OtherServer { server: String, path: PathBuf },
    #[error("no language server for `{}` is installed", path.display())]
    NotInstalled {
        path: PathBuf,
        /// The servers that could answer, best first.
        missing: Vec<MissingServer>,
        notes: Vec<ConfigNote>,
    },
    #[error("there is no language server with the id `{id}`")]
    UnknownId { id: String },
    #[error("{server}: {source}")]
    Lifecycle {
        server: Arc<str>,
        source: LifecycleError,
    },
    /// It isn't the process that the caller saw. Nothing was changed.
    #[error("you saw generation {seen}, and it is {} now", current.status.generation)]
    Moved {
        seen: ServerGeneration,
        current: Box<ServerView>,
    },
    #[error("all servers are being stopped: {0}")]
    StopOfAll(#[source] LifecycleError),
    #[error("{server} is still reading the workspace: {}", describe(progress))]
    NotReady { server: Arc<str>, progress: ReadyState },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("{server}: {source}")]
    Request { server: Arc<str>, source: RequestError },
    #[error("{server}: {source}")]
    Sent { server: Arc<str>, source: SentError },
    /// The server exited at the deadline, or during a request that must not be repeated.
    #[error("{server} went away in generation {generation} while it was asked; ask again")]
    WentAway { server: Arc<str>, generation: u64 },
    #[error("the daemon is shutting down")]
    ShuttingDown,
}

fn describe(progress: &ReadyState) -> String {
    match progress {
        ReadyState::Ready => "ready".to_owned(),
        ReadyState::Indexing {
            title,
            message,
            percentage,
        } => {
            let mut text = title.clone();
            if let Some(message) = message {
                text.push_str(&format!(" ({message})"));
            }
            if let Some(percentage) = percentage {
                text.push_str(&format!(", {percentage} %"));
            }
            text
        }
    }
}
