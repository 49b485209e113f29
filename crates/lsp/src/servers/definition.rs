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

/// How a server says that it has finished reading the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It sends `experimental/serverStatus`, and is ready when that says `quiescent`.
    ServerStatus,
    /// It reports the work it does under progress tokens, and is ready when none is open.
    WorkDoneProgress,
    /// It writes a log message that holds this text. Until then it answers with less than there is.
    LogMessage(&'static str),
    /// It says nothing; an answer is as good as it gets.
    Silent,
}

/// Where a definition comes from. Later ones overrule earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    BuiltIn,
    User(PathBuf),
    /// The repository's `.lsp.json`, which the user has trusted.
    Repository(PathBuf),
}

/// Whether a server is to be used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enablement {
    Enabled,
    Disabled,
}

/// When a server has anything to say about a file of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    Always,
    /// Only if one of its root markers is there, such as `deno.json`.
    WithMarker,
    /// Only if a marker is there and the workspace is trusted, since its first act is to load code from it.
    WithMarkerAndTrust,
}

/// How bytes go to and from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The standard streams of a process that we start.
    Stdio,
    Tcp(SocketAddr),
    /// A process that we start and that listens there. With port 0 the starter picks a free port.
    TcpSpawned(SocketAddr),
}

/// Files of one language, as one server sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageFiles {
    pub id: Arc<str>,
    pub extensions: Vec<String>,
    pub names: Vec<String>,
}

/// A program and what stands behind it on its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// A bare name is looked for; anything with a slash is a path.
    pub program: String,
    /// May hold [`DATA_PLACEHOLDER`] and [`PORT_PLACEHOLDER`].
    pub arguments: Vec<String>,
}

/// Stands for a directory that this server has for itself and this root. Two instances of jdtls on one such
/// directory destroy its index.
pub const DATA_PLACEHOLDER: &str = "{data}";
/// Stands for the port that was picked for [`Transport::TcpSpawned`] with port 0.
pub const PORT_PLACEHOLDER: &str = "{port}";

/// What a configuration may bound. What is not given is the manager's to choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// From the start to the answer to `initialize`.
    pub startup: Option<Duration>,
    pub request: Option<Duration>,
    pub shutdown: Option<Duration>,
    /// How long a server that nobody uses is kept.
    pub idle: Option<Duration>,
    /// How many crashes in a row are repaired.
    pub restarts: Option<u32>,
}

/// What has to be worked out for a root before the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjust {
    Nothing,
    TypeScript,
    /// Tell it where the TypeScript library is, as `typescript.tsdk`.
    TypeScriptLibrary,
    /// Tell it the interpreter of the project's virtual environment.
    PythonInterpreter,
    /// Tell it whether the workspace is trusted, as svelte's server wants it.
    TrustFlag,
}

/// One server, after all configuration has been put together.
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
    /// One line that a person can run to have it.
    pub install: String,
    pub origin: Origin,
    /// Where its command was given. One that was given by hand is preferred to what came with us.
    pub command_origin: Origin,
    pub(crate) adjust: Adjust,
}

impl ServerDefinition {
    /// The language of a file, if this server serves it. A whole name counts before an extension, and a long
    /// extension before a short one.
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

    /// Whether it serves a language, whatever the file is called.
    pub fn serves(&self, language: &str) -> bool {
        self.languages.iter().any(|served| *served.id == *language)
    }
}

/// A file that is nothing but an extension has none.
fn has_extension(file_name: &str, extension: &str) -> bool {
    file_name.len() > extension.len() && file_name.ends_with(extension)
}

/// How to reach a server, with nothing left to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchSpec {
    Stdio(CommandSpec),
    TcpSpawned {
        command: CommandSpec,
        /// Where it listens. With port 0 pick a free one and use [`CommandSpec::with_port`].
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
    /// All of it; nothing else is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    pub directory: PathBuf,
    /// Directories that must be there before the start; none but the server's own data is ever named.
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
