//! Processes that the daemon owns: what it has started, for whom and why.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A process that the daemon owns, with everything that it has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Process {
    /// The name of this very process. A process id may be used again, this is not.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX.7")]
    pub id: String,
    /// What it is doing. One that has ended is no longer listed.
    pub state: ProcessState,
    /// The process id of the command, once it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process id of its keeper, which ends it when the daemon dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper_pid: Option<u32>,
    /// Whom it belongs to.
    #[schema(example = "lsp/rust-analyzer")]
    pub owner: String,
    /// Why it runs.
    pub reason: String,
    /// Which start of its owner it is.
    pub generation: u64,
    /// How often the same program was started before for the same owner, in this life of the daemon.
    pub restarts: u64,
    /// When it was started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// For how long it has been there.
    pub age_ms: u64,
    /// How many processes it consists of, without the keeper.
    pub processes: u64,
    /// The resident memory of all of them. What they share is counted for each.
    pub rss_bytes: u64,
    /// The program and its arguments, shortened if they are very long.
    pub argv: Vec<String>,
    /// How much of the confinement that was asked for is in force.
    pub confinement: Confinement,
}

/// What an owned process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It does not run yet.
    Starting,
    /// It runs.
    Running,
    /// It is being stopped, or what it has left behind is.
    Stopping,
}

/// How much of a confinement is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// All of it.
    Full,
    /// What this kernel can do, which is not all.
    Partial,
    /// Nothing: none was asked for, or this kernel cannot do it.
    None,
}

/// The answer of `GET /v1/processes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessList {
    /// The processes, oldest first.
    pub processes: Vec<Process>,
}

/// The answer of `GET /v1/processes/{pid}`: why a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessExplanation {
    /// The process id that was asked for.
    pub pid: u32,
    /// What it is in the owned process.
    pub role: ProcessRole,
    /// The process that was asked for and its parents, up to the command or its keeper.
    pub line: Vec<ProcessAncestor>,
    /// The owned process that it is part of.
    pub process: Process,
}

/// What a process is in an owned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// The command itself.
    Command,
    /// The keeper, which ends the command when the daemon dies.
    Keeper,
    /// Something that the command has started.
    Descendant,
}

/// A process in a line of parents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessAncestor {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// Owned processes in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessSummary {
    /// How many there are.
    pub owned: u64,
    /// How many an earlier daemon had left running, which were ended when this one started.
    pub reclaimed: u64,
    /// How many an earlier daemon had left that could not be ended.
    pub unreclaimed: u64,
}
