//! Runs of the daemons of one home, as recorded in the log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One run of a daemon, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Boot {
    /// The id of the run.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub id: String,
    /// Whether the run is still going, and if not, how it ended.
    pub state: BootState,
    /// The process id of the daemon during this run.
    pub pid: u32,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// When the daemon started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// When the daemon stopped, in RFC 3339 and UTC. Absent while it is running, and after a crash, when the
    /// time is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// Who stopped the daemon, and why. Absent if it wasn't asked to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BootState {
    /// The daemon is running: it is the one that sent this response.
    Running,
    /// The daemon stopped normally.
    Stopped,
    /// The daemon ended without recording a stop. The next start detected this.
    Crashed,
}

/// The response of `GET /v1/boots`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BootList {
    /// The runs, newest first.
    pub boots: Vec<Boot>,
}
