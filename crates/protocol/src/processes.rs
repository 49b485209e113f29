//! Processes that the daemon owns: what it started, for whom and why.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A process that the daemon owns, including all of its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Process {
    /// A unique id of this process. Unlike a process id, it is never reused.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX.7")]
    pub id: String,
    /// The state of the process. Processes that have ended aren't listed.
    pub state: ProcessState,
    /// The process id of the command. Absent until it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process id of its keeper, which stops the command if the daemon dies. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper_pid: Option<u32>,
    /// The owner of the process.
    #[schema(example = "lsp/rust-analyzer")]
    pub owner: String,
    /// Why it runs.
    pub reason: String,
    /// Which start of its owner this is.
    pub generation: u64,
    /// How many times the same program was started before for the same owner, since the daemon started.
    pub restarts: u64,
    /// When it was started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// How long the process has existed, in milliseconds.
    pub age_ms: u64,
    /// The number of processes in the tree, without the keeper.
    pub processes: u64,
    /// The total resident memory of these processes, in bytes. Shared memory counts once per process.
    pub rss_bytes: u64,
    /// The program and its arguments. Very long ones are shortened.
    pub argv: Vec<String>,
    /// How much of the requested confinement is in force.
    pub confinement: Confinement,
}

/// The state of an owned process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It isn't running yet.
    Starting,
    /// It is running.
    Running,
    /// It, or what it left behind, is being stopped.
    Stopping,
}

/// How much of the requested confinement is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// All of it.
    Full,
    /// As much as this kernel supports, which isn't all of it.
    Partial,
    /// Nothing: none was requested, or this kernel doesn't support it.
    None,
}

/// The response of `GET /v1/processes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    /// The processes, oldest first.
    pub processes: Vec<Process>,
}

/// The response of `GET /v1/processes/{pid}`: why a process is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessExplanation {
    /// The process id from the request.
    pub pid: u32,
    /// The role of the process within the owned process.
    pub role: ProcessRole,
    /// The process and its ancestors, up to the command or its keeper.
    pub line: Vec<ProcessAncestor>,
    /// The owned process it belongs to.
    pub process: Process,
}

/// The role of a process within an owned process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// The command itself.
    Command,
    /// The keeper, which stops the command if the daemon dies.
    Keeper,
    /// A process that the command started.
    Descendant,
}

/// A process in a list of ancestors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessAncestor {
    /// The process id.
    pub pid: u32,
    /// The name of the program.
    pub name: String,
}

/// A summary of the owned processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessSummary {
    /// The number of owned processes.
    pub owned: u64,
    /// The number of processes left running by an earlier daemon that this one stopped at startup.
    pub reclaimed: u64,
    /// The number of processes left by an earlier daemon that couldn't be stopped.
    pub unreclaimed: u64,
}
