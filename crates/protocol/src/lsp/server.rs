//! Language servers as they run, and as they are configured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Its first process is on its way.
    Starting,
    /// It answers.
    Ready,
    /// A new process takes the place of the last one; callers wait or are told so.
    Restarting,
    /// It is being stopped.
    Stopping,
    /// No process. A query starts it again, unless it was stopped by hand.
    Stopped,
    /// It could not be started, or crashed too often.
    Failed,
}

/// Whether a server has read the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerReadiness {
    /// It has, as far as it says.
    Ready,
    /// It is still reading: answers may be incomplete.
    Indexing,
}

/// What a server says that it is working on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerProgress {
    /// What it is doing.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<u32>,
}

/// One language server of one workspace, shared by everybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Server {
    /// Names it in paths: the name of the server and a short hash of its root.
    pub id: String,
    /// What it is doing.
    pub state: ServerState,
    /// The name of the server, such as `rust-analyzer`.
    pub server: String,
    /// The directory that it works on.
    pub root: String,
    /// Which process it is: goes up by one with each.
    pub generation: u64,
    /// How long it has been in this state.
    pub since_ms: u64,
    /// Whether it has read the workspace; only while it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<ServerReadiness>,
    /// What it is working on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<ServerProgress>,
    /// Its process; there may be more below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The memory of its process tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// How often it was started again.
    pub restarts: u64,
    /// Why it failed, was started again or stopped the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When a failed server may be tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// How many are using it right now.
    pub leases: u64,
    /// Documents that are open in it.
    pub open_documents: u64,
    /// Requests that it has not answered yet.
    pub pending_requests: u64,
    /// Requests that were sent to it, over all generations.
    pub requests: u64,
}

/// The answer of `GET /v1/lsp/servers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    /// All servers that were used, sorted by root and name.
    pub servers: Vec<Server>,
}

/// The body of `POST /v1/lsp/servers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartServer {
    /// A file or a directory, as an absolute path.
    pub path: String,
    /// The server, by name. Left out, those for the language of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The workspace; see `CodeQuery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Variables of the caller that say where programs are; see `CodeQuery`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The optional body of `POST /v1/lsp/servers/{id}/stop` and `/restart`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeServer {
    /// Only if this is still the current generation. Left out, it is done to whichever there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The answer of `GET /v1/lsp/servers/{id}/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerHealth {
    /// The server.
    #[serde(flatten)]
    pub server: Server,
    /// Whether its process lives.
    pub alive: bool,
    /// Whether it answered a small request in time; missing if it was not in a state to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
    /// How long that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_in_ms: Option<u64>,
}

/// The answer of `GET /v1/lsp/servers/{id}/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLog {
    /// What it said lately, oldest first.
    pub lines: Vec<ServerLogLine>,
}

/// Something that a server said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerLogLine {
    /// When, in RFC 3339.
    pub at: String,
    /// `error`, `warning`, `info`, `log`, `stderr`, or `state` for what happened to the server.
    pub level: String,
    /// What it said.
    pub text: String,
}

/// Whether a configured server can be started here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "availability", rename_all = "snake_case")]
pub enum Availability {
    /// Its program is there.
    Found {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// It is not.
    Missing {
        /// How to get it.
        install: String,
    },
}

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredServer {
    /// Its name.
    pub server: String,
    /// The languages that it is for.
    pub languages: Vec<String>,
    /// `primary` or `supplement`.
    pub role: String,
    /// Where this comes from: `built-in`, `user` or `repository`.
    pub source: String,
    /// Whether it is turned off by configuration.
    pub disabled: bool,
    /// Whether it can be started here.
    #[serde(flatten)]
    pub availability: Availability,
}

/// Something to know about the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigNote {
    /// The file.
    pub path: String,
    /// What is the matter with it.
    pub message: String,
    /// What `POST /v1/lsp/config/trust` wants to see, if the file is not trusted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The answer of `GET /v1/lsp/config`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LspConfig {
    /// The workspace that it is for.
    pub workspace: String,
    /// Whether its `.lsp.json`, and servers that lie in it, are used: somebody has trusted it as it is now.
    pub trusted: bool,
    /// What `POST /v1/lsp/config/trust` wants to see to trust it as it is now.
    pub hash: String,
    /// All servers, sorted by name.
    pub servers: Vec<ConfiguredServer>,
    /// What to know about it.
    pub notes: Vec<ConfigNote>,
}

/// The body of `POST /v1/lsp/config/trust`: lets a repository's `.lsp.json` take effect, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustConfig {
    /// The workspace or its `.lsp.json`, as an absolute path.
    pub path: String,
    /// The hash that was shown, so that nothing else is trusted than what was looked at.
    pub hash: String,
}

/// The answer of `POST /v1/lsp/config/trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trusted {
    /// The file.
    pub path: String,
    /// The content that is trusted.
    pub hash: String,
}
