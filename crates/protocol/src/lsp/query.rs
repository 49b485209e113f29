//! What is asked of language servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The body of every query, `POST /v1/lsp/{verb}`. Which members a verb wants is said at the verb; others are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeQuery {
    /// The file that it is about, as an absolute path. For symbols of a workspace: any path in it.
    pub path: String,
    /// The line, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1 on, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The last line of a range. Left out, the range is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column behind the last character of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// The workspace, as an absolute path: the bounds for the root of the server, and what paths in the answer are
    /// relative to. Left out, it is the repository that the file is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Variables of the caller that say where programs are, those of [`SEARCH_VARIABLES`]; others are ignored. A server is
    /// looked for with them before those of the daemon, and gets them if it does not run yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The one server to ask, by name. Left out, those for the file's language are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// For `rename`: the new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// For `workspace-symbols`: a part of the name; all of them if it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// For `references`: leave the declaration out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_declaration: Option<bool>,
    /// For `code-actions`: only kinds that begin so, such as `quickfix`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// For `calls`: whose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<CallDirection>,
    /// Whether to wait until the server has read the whole workspace; otherwise one that is still reading is
    /// `server_not_ready`, with its progress. Left out, it is waited for up to ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ready: Option<bool>,
    /// Answer `server_restarting` or `server_not_ready` at once, in place of waiting for a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_wait: Option<bool>,
    /// How long all of it may take: 30 seconds if it is left out, and more while a server starts or reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The variables that say where programs, toolchains and virtual environments are.
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

/// Which side of a call is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallDirection {
    /// Who calls it.
    #[default]
    Incoming,
    /// Whom it calls.
    Outgoing,
}

/// The body of `POST /v1/lsp/servers/{id}/request`: a request of the protocol itself, for what has no verb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRequest {
    /// The method, such as `textDocument/foldingRange`.
    pub method: String,
    /// Its parameters, in the words and positions of the protocol.
    #[serde(default)]
    pub params: Value,
    /// How long it may take: 30 seconds if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
