//! Programs that are connected over the Model Context Protocol.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer of `GET /v1/clients`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientList {
    /// The clients, the newest first.
    pub clients: Vec<Client>,
}

/// A client of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Client {
    /// The name under which its work stands in plans and jobs.
    #[schema(example = "claude-code#k3v9qd")]
    pub actor: String,
    /// What it calls itself.
    #[schema(example = "claude-code")]
    pub name: String,
    /// Its version, as it says; may be empty.
    pub version: String,
    /// The version of the protocol that it speaks.
    #[schema(example = "2025-11-25")]
    pub protocol: String,
    /// How it is connected.
    pub transport: ClientTransport,
    /// The directory that it works in, if it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Since when, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub since: String,
    /// The plan that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How many tools it has called.
    pub calls: u64,
    /// How many of these calls have not ended.
    pub in_flight: u64,
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientTransport {
    /// Through `tidelock mcp`.
    Stdio,
    /// Over HTTP, in a session.
    HttpSession,
    /// Over HTTP, each request on its own. It is listed for as long as it is remembered.
    Http,
}
