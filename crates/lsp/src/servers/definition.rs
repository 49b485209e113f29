//! What is known about a language server: which files it serves, how it is started, where its root is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::roots::RootRule;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Answers everything. A file has one primary server.
    Primary,
    /// Adds diagnostics, formatting and code actions beside the primary one.
    Supplement,
}

/// How a server reports that it has finished reading the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It sends `experimental/serverStatus`, and is ready when that contains `quiescent`.
    ServerStatus,
    /// It reports its work under progress tokens, and is ready when no token is open.
    WorkDoneProgress,
    /// It writes a log message that contains this text. Until then, its answers are incomplete.
    LogMessage(&'static str),
    /// It doesn't report anything; its answers are taken as they come.
    Silent,
}

/// Where a definition comes from. Later ones override earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    BuiltIn,
    User(PathBuf),
    /// The repository's `.lsp.json`, which the user has trusted.
    Repository(PathBuf),
}

/// Whether to use a server at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enablement {
    Enabled,
    Disabled,
}

/// When a server is relevant for a file of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    Always,
    /// Only if one of its root markers exists, such as `deno.json`.
    WithMarker,
    /// Only if a marker exists and the workspace is trusted, because the server first loads code from it.
    WithMarkerAndTrust,
}

/// How bytes go to and from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The standard streams of a process that we start.
    Stdio,
    Tcp(SocketAddr),
    /// A process that we start and that listens there. With port 0, the launcher picks a free port.
    TcpSpawned(SocketAddr),
}

/// Files of one language, as one server sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageFiles {
    pub id: Arc<str>,
    pub extensions: Vec<String>,
    pub names: Vec<String>,
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// A bare name is searched for; anything with a slash is a path.
    pub program: String,
    /// May hold [`DATA_PLACEHOLDER`] and [`PORT_PLACEHOLDER`].
    pub arguments: Vec<String>,
}

/// Stands for a directory that belongs to this server and this root. Two instances of jdtls on one such
/// directory destroy its index.
pub const DATA_PLACEHOLDER: &str = "{data}";
/// Stands for the port that was picked for [`Transport::TcpSpawned`] with port 0.
pub const PORT_PLACEHOLDER: &str = "{port}";

/// Limits that a configuration may set. The manager chooses the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// From the start to the answer to `initialize`.
    pub startup: Option<Duration>,
    pub request: Option<Duration>,
    pub shutdown: Option<Duration>,
    /// How long an unused server is kept.
    pub idle: Option<Duration>,
    /// How many crashes in a row lead to a restart.
    pub restarts: Option<u32>,
}

/// What has to be computed for a root before the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjust {
    Nothing,
    TypeScript,
    /// Tell it where the TypeScript library is, as `typescript.tsdk`.
    TypeScriptLibrary,
    /// Tell it the interpreter of the project's virtual environment.
    PythonInterpreter,
    /// Tell it whether the workspace is trusted, in the form that Svelte's server expects.
    TrustFlag,
}

/// One server, after merging all configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDefinition {
    pub name: Arc<str>,
    pub languages: Vec<LanguageFiles>,
    pub commands: Vec<CommandLine>,
    pub roots: RootRule,
    pub role: Role,
    pub applies: Applies,
    pub readiness: Readiness,
    pub transport: Transport,
    /// Sent with `initialize`.
    pub initialization_options: Option<Value>,
    /// Answers `workspace/configuration`, by section.
    pub settings: Option<Value>,
    /// Variables that are passed on if the daemon has them.
    pub passed_variables: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub limits: ServerLimits,
    pub enablement: Enablement,
    /// A command that installs it.
    pub install: String,
    pub origin: Origin,
    /// Where its command comes from. A configured command is preferred over a built-in one.
    pub command_origin: Origin,
    pub(crate) adjust: Adjust,
}

impl ServerDefinition {
    /// The language of a file, if this server serves it. A whole name wins over an extension, and a long
    /// extension over a short one.
    pub fn language_of(&self, file_name: &str) -> Option<&Arc<str>> {
        let by_name = || {
            self.languages
                .iter()
                .find(|language| language.names.iter().any(|name| name == file_name))
        };
        let by_extension = || {
            let matching = self.languages.iter().flat_map(|language| {
                let extensions = language.extensions.iter();
                extensions
                    .filter(|extension| has_extension(file_name, extension))
                    .map(move |extension| (extension.len(), language))
            });
            matching
                .max_by_key(|(length, _)| *length)
                .map(|(_, language)| language)
        };
        by_name().or_else(by_extension).map(|language| &language.id)
    }

    /// Whether it serves a language, whatever the file is named.
    pub fn serves(&self, language: &str) -> bool {
        self.languages.iter().any(|served| *served.id == *language)
    }
}

/// A name that consists only of the extension doesn't count.
fn has_extension(file_name: &str, extension: &str) -> bool {
    file_name.len() > extension.len() && file_name.ends_with(extension)
}

/// How to reach a server, with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchSpec {
    Stdio(CommandSpec),
    TcpSpawned {
        command: CommandSpec,
        /// Where it listens. With port 0, pick a free one and use [`CommandSpec::with_port`].
        address: SocketAddr,
    },
    /// Connect; nothing is started.
    Tcp(SocketAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Absolute.
    pub program: PathBuf,
    /// Without the program itself.
    pub arguments: Vec<OsString>,
    /// The complete environment; nothing else is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: PathBuf,
    /// Directories that must exist before the start; this only ever names the server's own data.
    pub needed_directories: Vec<PathBuf>,
}

impl CommandSpec {
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        let port = port.to_string();
        for argument in &mut self.arguments {
            if let Some(text) = argument.to_str() {
                *argument = text.replace(PORT_PLACEHOLDER, &port).into();
            }
        }
        self
    }
}

impl Origin {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::BuiltIn => None,
            Self::User(path) | Self::Repository(path) => Some(path),
        }
    }
}
