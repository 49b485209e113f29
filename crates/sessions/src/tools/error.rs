//! What can go wrong with a call of a tool, in words that tell a model what to do next.

use std::error::Error;
use std::time::Duration;

use plans::{PlanError, RelPath, TreeError};
use protocol::ToolState;

/// A call of a tool did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`. The tools are: {known}.")]
    Unknown {
        /// What was called.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The arguments are not what the tool takes.
    #[error("nothing was done: {wrong}. `{tool}` takes {takes}.")]
    Arguments {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        wrong: String,
        /// What it takes.
        takes: String,
    },
    /// It cannot be done, for a reason that the tool gives.
    #[error("{0}")]
    Refused(String),
    /// The plan did not do it.
    #[error("{}", advice(.0))]
    Plan(#[from] PlanError),
    /// A rule or the user did not allow it.
    #[error("{0}")]
    Denied(String),
    /// It took too long.
    #[error(
        "it timed out after {} s. Ask for less at once, for example by naming a directory.",
        after.as_secs()
    )]
    TimedOut {
        /// How long it had.
        after: Duration,
    },
    /// The turn was stopped.
    #[error("the turn was stopped")]
    Cancelled,
}

impl ToolError {
    /// How a call ends that fails so.
    pub(super) fn state(&self) -> ToolState {
        match self {
            Self::Denied(_) => ToolState::Denied,
            Self::Cancelled => ToolState::Cancelled,
            Self::Unknown { .. }
            | Self::Arguments { .. }
            | Self::Refused(_)
            | Self::Plan(_)
            | Self::TimedOut { .. } => ToolState::Failed,
        }
    }

    /// What a tree says of a path.
    pub(super) fn of_tree(path: &RelPath, error: &TreeError) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::missing(path),
            _ => Self::Refused(format!("{error}.")),
        }
    }

    /// There is nothing at a path.
    pub(super) fn missing(path: &RelPath) -> Self {
        Self::Plan(PlanError::FileNotFound {
            path: path.to_string(),
        })
    }
}

/// What a plan's error means for whoever works in it.
fn advice(error: &PlanError) -> String {
    let next = match error {
        PlanError::FileNotFound { .. } => "List the directory to see what is there.",
        PlanError::BadPath(_) => "Name it from the root of the workspace, for example `src/main.rs`.",
        PlanError::FileStale { .. } => "Read it again, then redo your change if it still applies.",
        PlanError::Busy { .. } | PlanError::Stale { .. } => "Try again in a moment.",
        PlanError::WrongState { .. } | PlanError::SandboxGone(_) => {
            "Nothing more can be changed in this plan; tell the user."
        }
        PlanError::NoRoom { .. }
        | PlanError::BadWorkspace { .. }
        | PlanError::WorkspaceGone { .. }
        | PlanError::Elsewhere { .. }
        | PlanError::Sandbox(_)
        | PlanError::Base(_) => "You can't fix this yourself; tell the user.",
        PlanError::FileRefused { .. } => "",
        _ => "If it happens again, tell the user.",
    };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    if next.is_empty() {
        format!("{text}.")
    } else {
        format!("{text}. {next}")
    }
}
