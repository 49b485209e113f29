//! The format of `.lsp.json` in plugins of Claude Code: `{"NAME": {"command": …, "extensionToLanguage": …}}`.
//!
//! People already have such files. Keys without a meaning here are accepted and ignored; unknown keys are errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::super::definition::{ServerLimits, Transport};
use super::error::{ConfigError, place, typed};
use super::merge::Configuration;
use super::own::{self, Words};
use super::patch::ServerPatch;

/// Some files wrap the servers in this key, like the manifest of a plugin.
const WRAPPER: &str = "lspServers";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    #[serde(default, rename = "$schema")]
    _schema: Option<String>,
    #[serde(rename = "lspServers")]
    servers: BTreeMap<String, FlatServer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FlatServer {
    #[serde(default)]
    command: Option<Words>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    extension_to_language: Option<BTreeMap<String, String>>,
    /// The format also has `socket`, but without an address; our own transports have one, and are accepted here too.
    #[serde(default)]
    transport: Option<Transport>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    initialization_options: Option<Value>,
    #[serde(default)]
    settings: Option<Value>,
    #[serde(default)]
    workspace_folder: Option<PathBuf>,
    #[serde(default)]
    startup_timeout: Option<u64>,
    #[serde(default)]
    shutdown_timeout: Option<u64>,
    #[serde(default)]
    restart_on_crash: Option<bool>,
    #[serde(default)]
    max_restarts: Option<u32>,
    /// Whether an editor shows diagnostics by itself, and how it logs: neither applies to us.
    #[serde(default, rename = "diagnostics")]
    _diagnostics: IgnoredAny,
    #[serde(default, rename = "loggingConfig")]
    _logging: IgnoredAny,
}

/// Whether a text is in this format: it has no key of our own format.
pub(super) fn is_flat(path: &Path, text: &str) -> Result<bool, ConfigError> {
    let keys: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => place(path, Some(".".to_owned()), &error),
            _ => place(path, None, &error),
        })?;
    let is_ours = keys.is_empty() || own::KEYS[1..].iter().any(|key| keys.contains_key(*key));
    Ok(!is_ours)
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Configuration, ConfigError> {
    let is_wrapped = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text)
        .is_ok_and(|keys| keys.contains_key(WRAPPER));
    let servers = if is_wrapped {
        typed::<Wrapped>(path, text)?.servers
    } else {
        typed::<BTreeMap<String, FlatServer>>(path, text)?
    };
    Ok(Configuration {
        servers: servers
            .into_iter()
            .map(|(name, server)| (name, server.into()))
            .collect(),
        prefer: BTreeMap::new(),
    })
}

impl From<FlatServer> for ServerPatch {
    fn from(server: FlatServer) -> Self {
        let command = server.command.and_then(Words::into_command).map(|mut command| {
            command.arguments.extend(server.args);
            command
        });
        let restarts = match server.restart_on_crash {
            Some(false) => Some(0),
            Some(true) | None => server.max_restarts,
        };
        Self {
            command,
            files: server.extension_to_language.map(own::by_language),
            directory: server.workspace_folder,
            environment: server.env,
            initialization_options: server.initialization_options,
            settings: server.settings,
            transport: server.transport,
            limits: ServerLimits {
                startup: server.startup_timeout.map(Duration::from_millis),
                shutdown: server.shutdown_timeout.map(Duration::from_millis),
                restarts,
                ..ServerLimits::default()
            },
            ..Self::default()
        }
    }
}
