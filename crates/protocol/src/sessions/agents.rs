//! Agents that sessions can use.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The name of the agent, which is also its id.
    pub id: String,
    /// `ready`, or `missing` if something is missing.
    pub state: String,
    /// The kind of agent.
    pub kind: AgentKind,
    /// A one-line description.
    pub description: String,
    /// What is missing, and what to do about it. Absent if the agent is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether it is the default agent.
    pub default: bool,
}

/// The kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// An agent that follows a script.
    Rehearsal,
    /// A model behind a chat completions API.
    Model,
    /// A program that speaks the Agent Client Protocol.
    Acp,
}

/// The response of `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// The agents, sorted by name.
    pub agents: Vec<Agent>,
}
