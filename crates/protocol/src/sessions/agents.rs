//! Who can be asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// What it is called; also under `id`, as everything has one.
    pub id: String,
    /// `ready`, or `missing` something.
    pub state: String,
    /// What it is.
    pub kind: AgentKind,
    /// In one line.
    pub description: String,
    /// What is missing, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether it is asked if nobody says which.
    pub default: bool,
}

/// What an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// It follows a script.
    Rehearsal,
    /// A model behind an interface for chat completions.
    Model,
    /// A program that speaks the Agent Client Protocol.
    Acp,
}

/// The answer of `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// The agents, by name.
    pub agents: Vec<Agent>,
}
