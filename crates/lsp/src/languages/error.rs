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
    /// The path cannot be asked about.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be read as a text.
    #[error(transparent)]
    Text(#[from] ReadTextError),
    /// The workspace cannot be looked at.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// No server is configured for such files.
    #[error("no language server is configured for `{}`", path.display())]
    NoServer {
        /// The file.
        path: PathBuf,
        /// What people should know about the configuration.
        notes: Vec<ConfigNote>,
    },
    /// The server that was named is not for such files.
    #[error("`{server}` is no language server for `{}`", path.display())]
    OtherServer {
        /// The server.
        server: String,
        /// The file.
        path: PathBuf,
    },
    /// Servers are known and none is on this machine.
    #[error("no language server for `{}` is on this machine", path.display())]
    NotInstalled {
        /// The file.
        path: PathBuf,
        /// The servers that would do, the best one first.
        missing: Vec<MissingServer>,
        /// What people should know about the configuration.
        notes: Vec<ConfigNote>,
    },
    /// No server with this id was used.
    #[error("no language server with the id `{id}` was used")]
    UnknownId {
        /// The id.
        id: String,
    },
    /// The server could not be had.
    #[error("{server}: {source}")]
    Lifecycle {
        /// Which.
        server: Arc<str>,
        /// Why.
        source: LifecycleError,
    },
    /// It is not the process that the caller saw. Nothing was changed.
    #[error("you saw generation {seen}, and it is {} now", current.status.generation)]
    Moved {
        /// What the caller saw.
        seen: ServerGeneration,
        /// The server as it was when the caller was refused.
        current: Box<ServerView>,
    },
    /// The stop of all servers was not waited for.
    #[error("all servers are being stopped: {0}")]
    StopOfAll(#[source] LifecycleError),
    /// The server is still reading the workspace.
    #[error("{server} is still reading the workspace: {}", describe(progress))]
    NotReady {
        /// Which.
        server: Arc<str>,
        /// How far it is.
        progress: ReadyState,
    },
    /// The server cannot be given the document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The question cannot be asked, or the answer not be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// There is no answer.
    #[error("{server}: {source}")]
    Request {
        /// Which server.
        server: Arc<str>,
        /// Why.
        source: RequestError,
    },
    /// The server did not take the document.
    #[error("{server}: {source}")]
    Sent {
        /// Which server.
        server: Arc<str>,
        /// Why.
        source: SentError,
    },
    /// The server went away when the time was over, or during a request that may not be repeated.
    #[error("{server} went away in generation {generation} while it was asked; ask again")]
    WentAway {
        /// Which server.
        server: Arc<str>,
        /// Which process of it.
        generation: u64,
    },
    /// The process is being taken down.
    #[error("nothing can be looked up any more")]
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
