//! What the owner of a daemon has written down: `config.toml`, which need not be there.
//!
//! It is read when a daemon starts. A mistake in it is an error, and the daemon does not start: a rule that forbids something
//! must not be passed over because of a typing error somewhere else.

mod context;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sessions::permissions::Rule;
use sessions::{AfterCrash, SessionsSettings};

pub(crate) use context::ContextSection;

/// A configuration by hand has a hundredth of this. What is larger is something else.
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// The file as it is written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Configuration {
    pub(crate) sessions: SessionsSection,
    pub(crate) model: ModelSection,
    /// Agents that speak the Agent Client Protocol, by name.
    pub(crate) agents: BTreeMap<String, AgentSection>,
    pub(crate) context: ContextSection,
}

/// What holds for all sessions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SessionsSection {
    pub(crate) default_agent: Option<String>,
    pub(crate) after_crash: Option<AfterCrashWord>,
    pub(crate) permission_timeout_seconds: Option<u64>,
    pub(crate) turn_timeout_seconds: Option<u64>,
    pub(crate) tool_timeout_seconds: Option<u64>,
    pub(crate) max_turns: Option<usize>,
    pub(crate) rules: Vec<Rule>,
}

/// What becomes of prompts that waited when a daemon went away.
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
    /// The variable that has the key.
    pub(crate) key_env: Option<String>,
    /// The file that has the key.
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) context_tokens: Option<u64>,
    /// How much of the code is shown to the model before a turn begins; 0 is nothing.
    pub(crate) opening_context_tokens: Option<usize>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_time_seconds: Option<u64>,
    /// In the currency of the prices.
    pub(crate) max_cost: Option<f64>,
    /// What a million tokens cost that the model reads.
    pub(crate) input_price: Option<f64>,
    /// What a million tokens cost that it writes.
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
    /// Variables that it gets besides those of the daemon.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Where it may write besides its sandbox, such as where it keeps its conversations.
    #[serde(default)]
    pub(crate) write_below: Vec<PathBuf>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It is there and cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not TOML, or has something in it that nobody knows.
    #[error("{path}: {what}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

/// Reads a configuration; an empty one if there is no such file.
pub(crate) fn load(path: Option<&Path>) -> Result<Configuration, ConfigurationError> {
    let Some(path) = path else {
        return Ok(Configuration::default());
    };
    let unreadable = |source| ConfigurationError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let Some(text) = read(path).map_err(unreadable)? else {
        return Ok(Configuration::default());
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

/// Reads a configuration and looks whether it makes sense.
fn parse(text: &str) -> Result<Configuration, String> {
    let configuration: Configuration = toml::from_str(text).map_err(|error| place_of(text, &error))?;
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
    if configuration.sessions.max_turns == Some(0) {
        return Err("`sessions.max_turns` must be at least 1".to_owned());
    }
    Ok(configuration)
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

/// What is wrong, with its line and column.
fn place_of(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', ", ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return message;
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {message}")
}

impl SessionsSection {
    /// The choices, with the usual ones where nothing is written.
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
            permission_timeout: seconds(self.permission_timeout_seconds, usual.permission_timeout),
            max_turns: self.max_turns.unwrap_or(usual.max_turns),
            turn_timeout: seconds(self.turn_timeout_seconds, usual.turn_timeout),
            tool_timeout: seconds(self.tool_timeout_seconds, usual.tool_timeout),
        }
    }
}

#[cfg(test)]
mod tests {
    use ::context::{CommandSettings, ContextSettings, StrategySettings, TokenizerName};
    use sessions::permissions::Permission;

    use super::*;

    #[test]
    fn everything_that_can_be_written_is_read() {
        let text = r#"
            [sessions]
            default_agent = "opencode"
            after_crash = "wait"
            permission_timeout_seconds = 60
            turn_timeout_seconds = 61
            tool_timeout_seconds = 62
            max_turns = 7
            rules = [{ tool = "shell", pattern = "git push*", permission = "ask" }]

            [model]
            base_url = "http://127.0.0.1:8080/v1"
            key_env = "SOME_KEY"
            model = "some-model"
            context_tokens = 1000
            opening_context_tokens = 500
            max_steps = 1
            max_tokens = 2
            max_time_seconds = 3
            max_cost = 0.5
            input_price = 3
            output_price = 15.0
            request_timeout_seconds = 4
            idle_timeout_seconds = 5
            max_retries = 6

            [agents.opencode]
            command = ["opencode", "acp"]
            description = "An agent"
            environment = { A = "b" }
            write_below = ["/var/lib/opencode"]

            [context]
            budget_tokens = 1
            deadline_ms = 2
            tokenizer = "cl100k"
            workers = 3
            index_limit_mb = 4

            [context.strategies.repo-map]
            enabled = false
            timeout_ms = 5
            weight = 0.6

            [[context.commands]]
            name = "mine"
            command = ["find-it", "--json"]
            timeout_ms = 7
            weight = 8
        "#;
        let read = parse(text).unwrap();
        assert_eq!(read.model.output_price, Some(15.0));
        assert_eq!(read.model.input_price, Some(3.0));
        assert_eq!(
            read.agents,
            BTreeMap::from([(
                "opencode".to_owned(),
                AgentSection {
                    command: vec!["opencode".to_owned(), "acp".to_owned()],
                    description: "An agent".to_owned(),
                    environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
                    write_below: vec![PathBuf::from("/var/lib/opencode")],
                }
            )])
        );
        let milliseconds = Duration::from_millis;
        let repo_map = StrategySettings {
            enabled: false,
            timeout: milliseconds(5),
            weight_percent: 60,
        };
        let expected = ContextSettings {
            budget_tokens: 1,
            patience: milliseconds(2),
            tokenizer: TokenizerName::Cl100k,
            workers: 3,
            index_limit_bytes: 4 * 1024 * 1024,
            strategies: BTreeMap::from([("repo-map".to_owned(), repo_map)]),
            commands: vec![CommandSettings {
                name: "mine".to_owned(),
                command: vec!["find-it".to_owned(), "--json".to_owned()],
                timeout: milliseconds(7),
                weight_percent: 800,
            }],
        };
        assert_eq!(read.context.settings(), expected);
        let settings = read.sessions.settings("opencode".to_owned());
        let rule = Rule {
            tool: "shell".to_owned(),
            pattern: Some("git push*".to_owned()),
            permission: Permission::Ask,
        };
        let seconds = Duration::from_secs;
        assert_eq!(
            (settings.after_crash, settings.rules),
            (AfterCrash::Wait, vec![rule])
        );
        assert_eq!(
            (
                settings.permission_timeout,
                settings.turn_timeout,
                settings.tool_timeout,
                settings.max_turns
            ),
            (seconds(60), seconds(61), seconds(62), 7)
        );
        assert_eq!(parse("").unwrap(), Configuration::default());
        assert_eq!(ContextSection::default().settings(), ContextSettings::default());
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        for (text, expected) in [
            (
                "[model]\nmodle = \"a\"\n",
                "line 2, column 1: unknown field `modle`, expected one of `base_url`, ",
            ),
            (
                "[modle]\n",
                "line 1, column 2: unknown field `modle`, expected one of ",
            ),
            ("[sessions]\nmax_turns = \"many\"\n", "line 2, column 13: "),
            (
                "[sessions]\nafter_crash = \"never\"\n",
                "line 2, column 15: unknown variant `never`, expected ",
            ),
            (
                "[sessions]\nrules = [{ tool = \"*\", permission = \"no\" }]\n",
                "line 2, column ",
            ),
            ("[sessions\n", "line 1, column "),
            ("[sessions]\nmax_turns = 0\n", "`sessions.max_turns` must be"),
            (
                "[model]\nkey_env = \"A\"\nkey_file = \"/b\"\n",
                "`model` has both `key_env` and `key_file`",
            ),
            (
                "[model]\nkey_file = \"b\"\n",
                "`model.key_file` is not an absolute",
            ),
            (
                "[model]\nmax_cost = -1.0\n",
                "a price or a cost of `model` is less",
            ),
            (
                "[agents.model]\ncommand = [\"a\"]\n",
                "`agents.model`: there is an agent of this name",
            ),
            (
                "[agents.\"a b\"]\ncommand = [\"a\"]\n",
                "`agents.a b`: a name has",
            ),
            (
                "[agents.a]\ncommand = []\n",
                "`agents.a.command` names no program",
            ),
            ("[agents.a]\n", "line 1, column "),
            (
                "[agents.a]\ncommand = [\"a\"]\nwrite_below = [\"b\"]\n",
                "`agents.a.write_below` has `b`, which is not an absolute",
            ),
            (
                "[context]\nbudget = 1\n",
                "line 2, column 1: unknown field `budget`",
            ),
            (
                "[context]\nbudget_tokens = 1000001\n",
                "`context.budget_tokens` is 1000001, and the most is 1000000",
            ),
            (
                "[context]\ndeadline_ms = 0\n",
                "`context.deadline_ms` is 0, and must lie between 1 and 120000",
            ),
            (
                "[context]\ntokenizer = \"words\"\n",
                "line 2, column 13: unknown variant `words`, expected ",
            ),
            (
                "[context]\nworkers = 65\n",
                "`context.workers` is 65, and must lie between 1 and 64",
            ),
            (
                "[context]\nindex_limit_mb = 0\n",
                "`context.index_limit_mb` must be",
            ),
            (
                "[context.strategies.keywrod]\n",
                "`context.strategies.keywrod`: there is no strategy of this name, only: keyword, ",
            ),
            (
                "[context.strategies.keyword]\ntimeout_ms = 120001\n",
                "`context.strategies.keyword.timeout_ms` is 120001, and must lie",
            ),
            (
                "[context.strategies.keyword]\nweight = -0.5\n",
                "`context.strategies.keyword.weight` is -0.5, and must lie between 0 and 100",
            ),
            (
                "[context.strategies.keyword]\nweight = nan\n",
                "`context.strategies.keyword.weight` is NaN",
            ),
            ("[[context.commands]]\nname = \"a\"\n", "line 1, column "),
            (
                "[[context.commands]]\nname = \"a\"\ncommand = [\"\"]\n",
                "`context.commands.a.command` names no program",
            ),
            (
                "[[context.commands]]\nname = \"recent\"\ncommand = [\"a\"]\n",
                "`context.commands.recent`: there is a strategy of this name",
            ),
            (
                "[[context.commands]]\nname = \"a/b\"\ncommand = [\"a\"]\n",
                "`context.commands.a/b`: a name has",
            ),
            (
                "[[context.commands]]\nname = \"a\"\ncommand = [\"a\"]\nweight = 101\n",
                "`context.commands.a.weight` is 101, and",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(expected), "{text}: {found}");
        }
    }

    #[test]
    fn a_file_need_not_be_there_but_must_be_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        assert_eq!(load(Some(&path)).unwrap(), Configuration::default());
        assert_eq!(load(None).unwrap(), Configuration::default());
        assert!(matches!(
            load(Some(directory.path())).unwrap_err(),
            ConfigurationError::Unreadable { .. }
        ));
        std::fs::write(&path, "[agents]\na = 1\n").unwrap();
        let ConfigurationError::Invalid { path: named, what } = load(Some(&path)).unwrap_err() else {
            panic!("it is readable");
        };
        assert_eq!(named, path);
        assert!(what.starts_with("line 2, column 5: "), "{what}");
    }
}
