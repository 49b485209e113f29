//! Errors of tool calls, worded so that a model knows what to do next.

use std::error::Error;
use std::time::Duration;

use plans::{PlanError, RelPath, TreeError};
use protocol::ToolState;

/// Why a tool call failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`. The tools are: {known}.")]
    Unknown {
        /// The name that was called.
        name: String,
        /// The available tools.
        known: String,
    },
    /// The arguments don't match the tool's parameters.
    #[error("nothing was done: {wrong}. `{tool}` takes {takes}.")]
    Arguments {
        /// The tool.
        tool: String,
        /// What is wrong.
        wrong: String,
        /// What the tool accepts.
        takes: String,
    },
    /// The tool refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The plan reported an error.
    #[error("{}", advice(.0))]
    Plan(#[from] PlanError),
    /// A rule or the user denied it.
    #[error("{0}")]
    Denied(String),
    /// It took too long.
    #[error(
        "it timed out after {} s. Ask for less at once, for example by naming a directory.",
        after.as_secs()
    )]
    TimedOut {
        /// How long it ran.
        after: Duration,
    },
    /// The turn was stopped.
    #[error("the turn was stopped")]
    Cancelled,
}

impl ToolError {
    /// The state in which a call with this error ends.
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

    /// Converts a tree's error about a path.
    pub(super) fn of_tree(path: &RelPath, error: &TreeError) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::missing(path),
            _ => Self::Refused(format!("{error}.")),
        }
    }

    /// Nothing exists at a path.
    pub(super) fn missing(path: &RelPath) -> Self {
        Self::Plan(PlanError::FileNotFound {
            path: path.to_string(),
        })
    }
}

/// What a plan's error means for someone working in the plan.
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
