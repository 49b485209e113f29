//! The user's configuration: `config.toml`, which is optional.
//!
//! It is read when a daemon starts. If it has a mistake, the daemon doesn't start: a typo somewhere else must not make
//! it ignore a rule that forbids something.

mod context;
mod keys;
mod mcp;
mod places;
mod plans;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::PermissionRule;
use serde::Deserialize;
use sessions::{AfterCrash, SessionsSettings};
use toml::de::DeTable;

pub(crate) use self::plans::PlansSection;
pub(crate) use context::ContextSection;
pub use keys::{KEYS, Key, Kind};
pub(crate) use mcp::{ApplyWord, McpSection};
pub use places::alike;
pub use survey::settings_of;
pub(crate) use survey::survey;

/// The environment variable with the name of this machine.
pub(crate) const MACHINE_NAME: &str = "TIDELOCK_MACHINE";

/// A handwritten configuration is a hundredth of this size. A larger file is something else.
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// A file that was read: its settings, and the line of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) configuration: Configuration,
    places: places::Places,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Configuration {
    pub(crate) sessions: SessionsSection,
    pub(crate) model: ModelSection,
    /// Agents that speak the Agent Client Protocol, by name.
    pub(crate) agents: BTreeMap<String, AgentSection>,
    pub(crate) context: ContextSection,
    pub(crate) mcp: McpSection,
    pub(crate) plans: PlansSection,
    pub(crate) machine: MachineSection,
}

/// How this machine appears to others that share the log.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MachineSection {
    pub(crate) name: Option<String>,
}

impl MachineSection {
    /// The name that the user chose. The environment variable takes precedence over the file.
    pub(crate) fn name(&self, environment: &[(OsString, OsString)]) -> Option<String> {
        let set = crate::sessions::Variables(environment).text(MACHINE_NAME);
        set.or_else(|| self.name.clone()).filter(|name| !name.is_empty())
    }
}

/// Settings for all sessions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SessionsSection {
    pub(crate) default_agent: Option<String>,
    pub(crate) after_crash: Option<AfterCrashWord>,
    pub(crate) permission_timeout_seconds: Option<u64>,
    pub(crate) turn_timeout_seconds: Option<u64>,
    pub(crate) tool_timeout_seconds: Option<u64>,
    pub(crate) max_turns: Option<usize>,
    pub(crate) rules: Vec<PermissionRule>,
}

/// What happens to queued prompts after a daemon crashed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterCrashWord {
    GoOn,
    Wait,
}

/// The agent `model`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelSection {
    pub(crate) base_url: Option<String>,
    /// The environment variable with the API key.
    pub(crate) key_env: Option<String>,
    /// The file with the API key.
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) context_tokens: Option<u64>,
    /// How many tokens of code to show the model before a turn begins; 0 for none.
    pub(crate) opening_context_tokens: Option<usize>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_time_seconds: Option<u64>,
    /// In the currency of the prices.
    pub(crate) max_cost: Option<f64>,
    /// The price of a million input tokens.
    pub(crate) input_price: Option<f64>,
    /// The price of a million output tokens.
    pub(crate) output_price: Option<f64>,
    pub(crate) request_timeout_seconds: Option<u64>,
    pub(crate) idle_timeout_seconds: Option<u64>,
    pub(crate) max_retries: Option<u32>,
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSection {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) description: String,
    /// Environment variables in addition to the daemon's.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Where it may write outside its sandbox, for example to keep its conversations.
    #[serde(default)]
    pub(crate) write_below: Vec<PathBuf>,
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It exists but can't be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It isn't TOML, or has an unknown key in it.
    #[error("{path}: {what}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

/// Reads a configuration; returns an empty one if the file doesn't exist.
pub(crate) fn load(path: Option<&Path>) -> Result<Written, ConfigurationError> {
    let Some(path) = path else {
        return Ok(Written::default());
    };
    let unreadable = |source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let Some(text) = read(path).map_err(unreadable)? else {
        return Ok(Written::default());
    };
    parse(&text).map_err(|what| ConfigurationError::Invalid {
        path: path.to_owned(),
        what,
    })
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut text = String::new();
    file.take(LARGEST_FILE_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST_FILE_BYTES {
        true => Err(io::Error::other(format!(
            "it has more than {LARGEST_FILE_BYTES} bytes"
        ))),
        false => Ok(Some(text)),
    }
}

/// Parses a configuration and validates it.
fn parse(text: &str) -> Result<Written, String> {
    let document = DeTable::parse(text).map_err(|error| place_of(text, &error))?;
    let places = places::find(text, document.get_ref())?;
    let configuration: Configuration = toml::from_str(text).map_err(|error| place_of(text, &error))?;
    check(&configuration)?;
    Ok(Written {
        configuration,
        places,
    })
}

fn check(configuration: &Configuration) -> Result<(), String> {
    let ModelSection {
        key_env, key_file, ..
    } = &configuration.model;
    if key_env.is_some() && key_file.is_some() {
        return Err("`model` has both `key_env` and `key_file`; give one of them".to_owned());
    }
    if key_file.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err("`model.key_file` is not an absolute path".to_owned());
    }
    for (name, agent) in &configuration.agents {
        check_agent(name, agent)?;
    }
    for price in [
        configuration.model.max_cost,
        configuration.model.input_price,
        configuration.model.output_price,
    ]
    .into_iter()
    .flatten()
    {
        if !price.is_finite() || price < 0.0 {
            return Err("a price or a cost of `model` is less than nothing".to_owned());
        }
    }
    configuration.context.check()?;
    if configuration.plans.max_sandboxes == Some(0) {
        return Err("`plans.max_sandboxes` must be at least 1".to_owned());
    }
    if configuration.sessions.max_turns == Some(0) {
        return Err("`sessions.max_turns` must be at least 1".to_owned());
    }
    Ok(())
}

fn check_agent(name: &str, agent: &AgentSection) -> Result<(), String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if ["model", "rehearsal"].contains(&name) {
        return Err(format!("`agents.{name}`: there is an agent of this name already"));
    }
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Err(format!(
            "`agents.{name}`: a name has up to 64 letters, digits, dots and dashes"
        ));
    }
    if let Some(path) = agent.write_below.iter().find(|path| !path.is_absolute()) {
        let path = path.display();
        return Err(format!(
            "`agents.{name}.write_below` has `{path}`, which is not an absolute path"
        ));
    }
    match agent.command.first().is_none_or(String::is_empty) {
        true => Err(format!("`agents.{name}.command` names no program")),
        false => Ok(()),
    }
}

/// The error message with its line and column.
fn place_of(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', ", ");
    let Some(span) = error.span() else {
        return message;
    };
    let (line, column) = places::line_and_column(text, span.start);
    format!("line {line}, column {column}: {message}")
}

/// A URL without its user name and password.
#[must_use]
pub(crate) fn redact(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{}@{host}{path}", survey::NOT_SHOWN),
        None => address.to_owned(),
    }
}

impl SessionsSection {
    /// The settings, with defaults for what isn't configured.
    pub(crate) fn settings(self, default_agent: String) -> SessionsSettings {
        let usual = SessionsSettings::default();
        let seconds = |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_secs);
        SessionsSettings {
            default_agent,
            after_crash: match self.after_crash {
                None => usual.after_crash,
                Some(AfterCrashWord::GoOn) => AfterCrash::GoOn,
                Some(AfterCrashWord::Wait) => AfterCrash::Wait,
            },
            rules: self.rules,
            permission_timeout: self.permission_timeout_seconds.map(Duration::from_secs),
            max_turns: self.max_turns.unwrap_or(usual.max_turns),
            turn_timeout: seconds(self.turn_timeout_seconds, usual.turn_timeout),
            tool_timeout: seconds(self.tool_timeout_seconds, usual.tool_timeout),
        }
    }
}
