//! Queries to language servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The body of every query, `POST /v1/lsp/{verb}`. Each verb documents the fields it takes; other fields are
/// rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeQuery {
    /// The absolute path of the file. For workspace symbols: any path in the workspace.
    pub path: String,
    /// The line, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in characters, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The last line of a range. If omitted, the range is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column after the last character of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// The absolute path of the workspace. The server's root stays within it, and paths in the answer are
    /// relative to it. Defaults to the repository that contains the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The caller's environment variables for finding programs, those of [`SEARCH_VARIABLES`]; others are
    /// ignored. They take precedence over the daemon's when looking for a server, and are passed to a server
    /// that isn't running yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The name of the only server to ask. Defaults to the servers for the file's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// For `rename`: the new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// For `workspace-symbols`: a part of the name. Empty matches all symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// For `references`: whether to exclude the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_declaration: Option<bool>,
    /// For `code-actions`: only return kinds that start with one of these, such as `quickfix`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// For `calls`: whether to find callers or callees. Defaults to `incoming`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<CallDirection>,
    /// Whether to wait until the server has read the whole workspace. If false, a server that is still
    /// reading results in `server_not_ready`, with its progress. If omitted, the query waits for up to 10
    /// seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ready: Option<bool>,
    /// Whether to return `server_restarting` or `server_not_ready` immediately instead of waiting for a
    /// server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_wait: Option<bool>,
    /// The time limit, in milliseconds. Defaults to 30 seconds, and more while a server is starting or
    /// reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The environment variables for finding programs, toolchains and virtual environments.
pub const SEARCH_VARIABLES: [&str; 14] = [
    "PATH",
    "HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOBIN",
    "GOROOT",
    "JAVA_HOME",
    "NVM_BIN",
    "PYENV_VERSION",
    "PYTHONHOME",
];

/// Which side of a call to find.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallDirection {
    /// Callers of the function.
    #[default]
    Incoming,
    /// Functions that the function calls.
    Outgoing,
}

/// The body of `POST /v1/lsp/servers/{id}/request`: a raw LSP request, for methods without a verb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRequest {
    /// The LSP method, such as `textDocument/foldingRange`.
    pub method: String,
    /// The parameters, with the names and positions of LSP.
    #[serde(default)]
    pub params: Value,
    /// The time limit, in milliseconds. Defaults to 30 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
