//! Clients connected over the Model Context Protocol.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The response of `GET /v1/clients`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClientList {
    /// The clients, newest first.
    pub clients: Vec<Client>,
}

/// A client connected over the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Client {
    /// The actor name that plans and jobs record for the client's work.
    #[schema(example = "claude-code#k3v9qd")]
    pub actor: String,
    /// The name the client reports.
    #[schema(example = "claude-code")]
    pub name: String,
    /// The version the client reports. May be empty.
    pub version: String,
    /// The version of the protocol that the client uses.
    #[schema(example = "2025-11-25")]
    pub protocol: String,
    /// How it is connected.
    pub transport: ClientTransport,
    /// The directory the client works in. Absent if the client hasn't reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// When the client connected, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub since: String,
    /// The plan the client works in. Absent if it isn't working in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The number of tool calls the client has made.
    pub calls: u64,
    /// The number of those calls that haven't ended yet.
    pub in_flight: u64,
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientTransport {
    /// Through `tidelock mcp`.
    Stdio,
    /// Over HTTP, with a session.
    HttpSession,
    /// Over HTTP, with independent requests. The client is listed for as long as the daemon remembers it.
    Http,
}
