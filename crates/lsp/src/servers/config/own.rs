//! Our own format: `{"servers": {"NAME": {…}}, "prefer": {"LANGUAGE": ["NAME", …]}}`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::definition::{CommandLine, Enablement, Role, ServerLimits, Transport};
use super::merge::Configuration;
use super::patch::ServerPatch;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnFormat {
    #[serde(default, rename = "$schema")]
    _schema: Option<String>,
    #[serde(default)]
    servers: BTreeMap<String, OwnServer>,
    /// Names of primary servers by language, the preferred one first.
    #[serde(default)]
    prefer: BTreeMap<String, Vec<String>>,
}

/// The keys of the whole file.
pub(super) const KEYS: [&str; 3] = ["$schema", "servers", "prefer"];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnServer {
    #[serde(default)]
    command: Option<Words>,
    #[serde(default)]
    languages: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    extensions: Option<BTreeMap<String, String>>,
    #[serde(default)]
    roots: Option<Vec<Words>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    initialization_options: Option<Value>,
    #[serde(default)]
    settings: Option<Value>,
    #[serde(default)]
    transport: Option<Transport>,
    #[serde(default)]
    role: Option<Role>,
    #[serde(default)]
    disabled: Option<bool>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    timeouts: Timeouts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    max_restarts: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timeouts {
    startup_ms: Option<u64>,
    request_ms: Option<u64>,
    shutdown_ms: Option<u64>,
    idle_ms: Option<u64>,
}

impl From<OwnFormat> for Configuration {
    fn from(file: OwnFormat) -> Self {
        let servers = file
            .servers
            .into_iter()
            .map(|(name, server)| (name, server.into()));
        Self {
            servers: servers.collect(),
            prefer: file.prefer,
        }
    }
}

impl From<OwnServer> for ServerPatch {
    fn from(server: OwnServer) -> Self {
        let by_extension = server.extensions.map(by_language);
        let files = match (server.languages, by_extension) {
            (Some(mut languages), Some(more)) => {
                for (language, mut files) in more {
                    languages.entry(language).or_default().append(&mut files);
                }
                Some(languages)
            }
            (languages, more) => languages.or(more),
        };
        Self {
            command: server.command.and_then(Words::into_command),
            files,
            roots: server
                .roots
                .map(|groups| groups.into_iter().map(|group| group.0).collect()),
            directory: None,
            environment: server.env,
            initialization_options: server.initialization_options,
            settings: server.settings,
            transport: server.transport,
            role: server.role,
            enablement: server.disabled.map(|disabled| match disabled {
                true => Enablement::Disabled,
                false => Enablement::Enabled,
            }),
            limits: ServerLimits {
                startup: server.timeouts.startup_ms.map(Duration::from_millis),
                request: server.timeouts.request_ms.map(Duration::from_millis),
                shutdown: server.timeouts.shutdown_ms.map(Duration::from_millis),
                idle: server.timeouts.idle_ms.map(Duration::from_millis),
                restarts: server.limits.max_restarts,
            },
        }
    }
}

/// Inverts `{".py": "python"}`.
pub(super) fn by_language(extensions: BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let mut languages = BTreeMap::<_, Vec<_>>::new();
    for (extension, language) in extensions {
        languages.entry(language).or_default().push(extension);
    }
    languages
}

#[derive(Debug)]
pub(super) struct Words(pub(super) Vec<String>);

impl Words {
    pub(super) fn into_command(self) -> Option<CommandLine> {
        let mut words = self.0.into_iter();
        Some(CommandLine {
            program: words.next()?,
            arguments: words.collect(),
        })
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReadWords;
        impl<'de> Visitor<'de> for ReadWords {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings that is not empty")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Words, E> {
                if word.is_empty() {
                    return Err(E::invalid_length(0, &self));
                }
                Ok(Words(vec![word.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element::<String>()? {
                    words.push(word);
                }
                if words.first().is_none_or(String::is_empty) {
                    return Err(de::Error::invalid_length(0, &self));
                }
                Ok(Words(words))
            }
        }
        deserializer.deserialize_any(ReadWords)
    }
}
