//! Language servers: running and configured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of a language server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Its first process is starting.
    Starting,
    /// It is ready for requests.
    Ready,
    /// A new process is replacing the previous one. Callers wait, or get `server_restarting`.
    Restarting,
    /// It is being stopped.
    Stopping,
    /// It has no process. A query starts it again, unless a user stopped it.
    Stopped,
    /// It couldn't be started, or crashed too often.
    Failed,
}

/// Whether a server has read the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerReadiness {
    /// It has read the workspace, as far as it reports.
    Ready,
    /// It is still reading the workspace. Answers may be incomplete.
    Indexing,
}

/// Progress that a server reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerProgress {
    /// What the server is doing.
    pub title: String,
    /// More details. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The progress in percent. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<u32>,
}

/// A language server for one workspace, shared by all clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    /// The id, for use in paths: the name of the server and a short hash of its root.
    pub id: String,
    /// The state of the server.
    pub state: ServerState,
    /// The name of the server, such as `rust-analyzer`.
    pub server: String,
    /// The directory it works on.
    pub root: String,
    /// The number of the current process. It increases by one with each new process.
    pub generation: u64,
    /// How long the server has been in this state, in milliseconds.
    pub since_ms: u64,
    /// Whether the server has read the workspace. Only present while it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<ServerReadiness>,
    /// The tasks the server reports as in progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<ServerProgress>,
    /// The process id, which may have child processes. Absent if there is no process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The memory of its process tree, in bytes. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// How many times the server was restarted.
    pub restarts: u64,
    /// Why the server last failed, restarted or stopped. Absent if it never has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// How long until a failed server can be retried, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The number of current users of the server.
    pub leases: u64,
    /// The number of documents open in the server.
    pub open_documents: u64,
    /// The number of requests the server hasn't answered yet.
    pub pending_requests: u64,
    /// The number of requests sent to the server, over all generations.
    pub requests: u64,
}

/// The response of `GET /v1/lsp/servers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// All servers that have been used, sorted by root and name.
    pub servers: Vec<Server>,
}

/// The body of `POST /v1/lsp/servers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartServer {
    /// The absolute path of a file or directory.
    pub path: String,
    /// The name of the server. Defaults to the servers for the file's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The workspace. See `CodeQuery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's environment variables for finding programs. See `CodeQuery`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The optional body of `POST /v1/lsp/servers/{id}/stop` and `/restart`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeServer {
    /// Only act if this is still the current generation. If omitted, act on the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The response of `GET /v1/lsp/servers/{id}/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerHealth {
    /// The server.
    #[serde(flatten)]
    pub server: Server,
    /// Whether its process is alive.
    pub alive: bool,
    /// Whether it answered a small request in time. Absent if its state didn't allow a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
    /// How long the answer took, in milliseconds. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_in_ms: Option<u64>,
}

/// The response of `GET /v1/lsp/servers/{id}/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLog {
    /// The most recent lines, oldest first.
    pub lines: Vec<ServerLogLine>,
}

/// A line in the log of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLogLine {
    /// When it was logged, in RFC 3339.
    pub at: String,
    /// `error`, `warning`, `info`, `log`, `stderr`, or `state` for changes of the server's state.
    pub level: String,
    /// The text of the line.
    pub text: String,
}

/// Whether a configured server can be started here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "availability", rename_all = "snake_case")]
pub enum Availability {
    /// The program is installed.
    Found {
        /// The program.
        program: String,
        /// The arguments.
        arguments: Vec<String>,
    },
    /// The program isn't installed.
    Missing {
        /// How to install it.
        install: String,
    },
}

/// A configured server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredServer {
    /// The name of the server.
    pub server: String,
    /// The languages the server supports.
    pub languages: Vec<String>,
    /// `primary` or `supplement`.
    pub role: String,
    /// The source of this configuration: `built-in`, `user` or `repository`.
    pub source: String,
    /// Whether the configuration disables the server.
    pub disabled: bool,
    /// Whether the server can be started here.
    #[serde(flatten)]
    pub availability: Availability,
}

/// A note about the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigNote {
    /// The file.
    pub path: String,
    /// The problem with the file.
    pub message: String,
    /// The hash to pass to `POST /v1/lsp/config/trust`. Absent unless the file isn't trusted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The response of `GET /v1/lsp/config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LspConfig {
    /// The workspace this configuration is for.
    pub workspace: String,
    /// Whether the workspace's `.lsp.json` and the servers inside the workspace are used. This requires that
    /// a user has trusted its current content.
    pub trusted: bool,
    /// The hash to pass to `POST /v1/lsp/config/trust` to trust the current content.
    pub hash: String,
    /// All servers, sorted by name.
    pub servers: Vec<ConfiguredServer>,
    /// Notes about the configuration.
    pub notes: Vec<ConfigNote>,
}

/// The body of `POST /v1/lsp/config/trust`: trusts the current content of a repository's `.lsp.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustConfig {
    /// The absolute path of the workspace or its `.lsp.json`.
    pub path: String,
    /// The hash that was shown, so that only the content that was reviewed becomes trusted.
    pub hash: String,
}

/// The response of `POST /v1/lsp/config/trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trusted {
    /// The file.
    pub path: String,
    /// The hash of the trusted content.
    pub hash: String,
}
