//! Why a client was not joined.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::error::{Exit, Failure, chain};

#[derive(Debug, Error)]
pub(crate) enum JoinError {
    #[error("can't find the current directory or this program")]
    Surroundings(#[source] io::Error),
    #[error("HOME is not set, so the user configuration can't be found")]
    NoHome,
    #[error("{client} has no project configuration")]
    NoProject { client: &'static str },
    #[error(
        "{client} needs the token itself in its configuration, and Tidelock never writes the token to such a file"
    )]
    NoHttp { client: &'static str },
    #[error("{client} does not speak the Agent Client Protocol")]
    NoAgents { client: &'static str },
    #[error("the name must consist of letters, digits, `-` and `_`")]
    Name,
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` was not changed: {reason}", path.display())]
    NotUnderstood {
        path: PathBuf,
        reason: String,
        /// What to add by hand, if anything.
        piece: Option<String>,
    },
    #[error("there is a different entry `{name}` in `{}`", path.display())]
    Different { path: PathBuf, name: String },
    #[error("another program keeps changing `{}`", path.display())]
    Stale { path: PathBuf },
    #[error("`{}` cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Failure {
        let (exit, code, advice) = match &error {
            JoinError::Surroundings(_) => (
                Exit::Failed,
                "config_unreadable",
                "see the cause above".to_owned(),
            ),
            JoinError::NoHome => (
                Exit::Failed,
                "config_unreadable",
                "set HOME, or use --scope project".to_owned(),
            ),
            JoinError::NoProject { .. } => (Exit::Usage, "join_not_possible", "leave --scope out".to_owned()),
            JoinError::NoHttp { .. } => (Exit::Usage, "join_not_possible", "leave --http out".to_owned()),
            JoinError::NoAgents { .. } => (Exit::Usage, "join_not_possible", "leave --acp out".to_owned()),
            JoinError::Name => (Exit::Usage, "usage", "choose another --name".to_owned()),
            JoinError::Unreadable { .. } => (
                Exit::Failed,
                "config_unreadable",
                "fix it or move it away, then try again".to_owned(),
            ),
            JoinError::NotUnderstood { piece, .. } => {
                let advice = match piece {
                    Some(piece) => format!("add this yourself:\n{}", piece.trim_end()),
                    None => "remove the entry yourself".to_owned(),
                };
                (Exit::Failed, "config_not_understood", advice)
            }
            JoinError::Different { .. } => (
                Exit::Refused,
                "entry_differs",
                "review it, then use --replace or another --name".to_owned(),
            ),
            JoinError::Stale { .. } => (
                Exit::Refused,
                "config_changed",
                "close the client and try again".to_owned(),
            ),
            JoinError::Unwritable { .. } => (
                Exit::Failed,
                "config_unwritable",
                "make sure that you can write there, and try again".to_owned(),
            ),
        };
        Failure::new(exit, code, chain(&error)).advise(advice)
    }
}
