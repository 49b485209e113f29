//! The lives of the daemons of one home, as the log remembers them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One life of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Boot {
    /// The id of the life.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub id: String,
    /// What became of it.
    pub state: BootState,
    /// The process id that it had.
    pub pid: u32,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// When it started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// When it stopped, in RFC 3339 and UTC; nobody knows it of one that crashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// Who told it to stop, and why, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What became of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BootState {
    /// It goes on: it is the daemon that answers.
    Running,
    /// It ended as it should.
    Stopped,
    /// It ended without a word, and the next start found that out.
    Crashed,
}

/// The answer of `GET /v1/boots`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BootList {
    /// The lives, newest first.
    pub boots: Vec<Boot>,
}
