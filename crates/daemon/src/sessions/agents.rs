//! The agents of this daemon: built in, configured by the user, or installed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sessions::agents::acp::AcpSettings;
use sessions::agents::model::{ApiKey, ModelAgent, ModelLimits, ModelPrices, ModelSettings};
use sessions::agents::rehearsal::Rehearsal;
use sessions::{Agent, Readiness};

use super::known_agents::KNOWN;
use crate::configuration::{AgentSection, Configuration, ConfigurationError, ModelSection};

/// The agent that follows a script. It is always available.
pub(super) const REHEARSAL: &str = "rehearsal";
/// The agent that asks a model. It is always listed, and says what it lacks.
const MODEL: &str = "model";

/// The variable with the API key, unless the configuration names another one.
pub(crate) const USUAL_KEY: &str = "OPENAI_API_KEY";
/// The URL of the model. Takes precedence over the configuration.
pub(crate) const BASE_URL: &str = "TIDELOCK_MODEL_BASE_URL";
/// The URL of the model, if nothing else sets it. Other programs use this variable too.
pub(crate) const USUAL_BASE_URL: &str = "OPENAI_BASE_URL";
/// The name of the model. Takes precedence over the configuration.
pub(crate) const MODEL_NAME: &str = "TIDELOCK_MODEL";

/// The environment variables of this daemon.
#[derive(Clone, Copy)]
pub(crate) struct Variables<'a>(pub(crate) &'a [(OsString, OsString)]);

impl<'a> Variables<'a> {
    /// A variable that is set and not empty.
    fn get(self, name: &str) -> Option<&'a OsStr> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_os_str())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn text(self, name: &str) -> Option<String> {
        Some(self.get(name)?.to_str()?.to_owned())
    }

    /// The path of a program, if it is installed.
    pub(super) fn program(self, name: &str) -> Option<PathBuf> {
        let directories = std::env::split_paths(self.get("PATH").unwrap_or_default());
        directories
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|path| is_executable(path))
    }
}

fn is_executable(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The variables for commands: all but the model's API key, which only the daemon may use.
pub(crate) fn for_commands(
    environment: &[(OsString, OsString)],
    configuration: &Configuration,
) -> Vec<(OsString, OsString)> {
    let key = configuration.model.key_env.as_deref().unwrap_or(USUAL_KEY);
    let others = environment.iter().filter(|(name, _)| name != key);
    others.cloned().collect()
}

/// How to reach the model: Tidelock's own variables take precedence over the file, and the file over the common
/// variables.
pub(crate) fn model_settings(
    section: &ModelSection,
    variables: Variables<'_>,
) -> Result<ModelSettings, ConfigurationError> {
    let usual = ModelSettings::default();
    let base_url = variables
        .text(BASE_URL)
        .or_else(|| section.base_url.clone())
        .or_else(|| variables.text(USUAL_BASE_URL));
    let model = variables.text(MODEL_NAME).or_else(|| section.model.clone());
    let seconds = |given: Option<u64>, usual: Duration| given.map_or(usual, Duration::from_secs);
    let prices = match (section.input_price, section.output_price) {
        (None, None) => usual.prices,
        (input, output) => Some(ModelPrices {
            input_micros: micros(input.unwrap_or_default()),
            output_micros: micros(output.unwrap_or_default()),
        }),
    };
    Ok(ModelSettings {
        name: MODEL.to_owned(),
        base_url: base_url.unwrap_or(usual.base_url),
        key: key(section, variables)?,
        model: model.unwrap_or(usual.model),
        context_tokens: section.context_tokens.unwrap_or(usual.context_tokens),
        opening_context_tokens: section
            .opening_context_tokens
            .unwrap_or(usual.opening_context_tokens),
        limits: ModelLimits {
            steps: section.max_steps.unwrap_or(usual.limits.steps),
            tokens: section.max_tokens.unwrap_or(usual.limits.tokens),
            time: seconds(section.max_time_seconds, usual.limits.time),
            cost_micros: section.max_cost.map(micros).or(usual.limits.cost_micros),
        },
        prices,
        request_timeout: seconds(section.request_timeout_seconds, usual.request_timeout),
        idle_timeout: seconds(section.idle_timeout_seconds, usual.idle_timeout),
        max_retries: section.max_retries.unwrap_or(usual.max_retries),
        wait_limit: usual.wait_limit,
    })
}

fn key(section: &ModelSection, variables: Variables<'_>) -> Result<Option<ApiKey>, ConfigurationError> {
    let text = match &section.key_file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            Some(read.map_err(|source| ConfigurationError::Unreadable {
                path: path.clone(),
                source,
            })?)
        }
        None => variables.text(section.key_env.as_deref().unwrap_or(USUAL_KEY)),
    };
    Ok(text.as_deref().and_then(ApiKey::new))
}

/// A price in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "prices are checked to be positive, and what is too large is as good as the largest"
)]
fn micros(price: f64) -> u64 {
    (price * 1_000_000.0).round() as u64
}

/// A program that speaks the Agent Client Protocol.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) section: AgentSection,
    /// What to do if it isn't installed.
    pub(super) if_missing: Option<String>,
}

/// The programs that speak the protocol: configured ones, and known ones that are at least partly installed.
pub(super) fn programs(
    configured: &BTreeMap<String, AgentSection>,
    variables: Variables<'_>,
) -> BTreeMap<String, Program> {
    let installed = KNOWN.iter().filter_map(|known| {
        let found = known.find(variables)?;
        let section = AgentSection {
            command: found.command,
            description: format!("{}, found on this machine", known.description),
            environment: BTreeMap::new(),
            // Its session data is writable in every sandbox.
            write_below: Vec::new(),
        };
        let if_missing = found.if_missing;
        Some((known.name.to_owned(), Program { section, if_missing }))
    });
    let configured = configured.iter().map(|(name, section)| {
        let section = section.clone();
        let if_missing = None;
        (name.clone(), Program { section, if_missing })
    });
    // The configuration takes precedence over what was found.
    installed.chain(configured).collect()
}

/// How to run a program. It gets the daemon's variables, which include its own API keys, except those that configure
/// this daemon.
pub(super) fn acp_settings(name: &str, program: Program, variables: Variables<'_>) -> AcpSettings {
    let inherited = variables.0.iter();
    let inherited = inherited.filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"TIDELOCK_"));
    let Program { section, if_missing } = program;
    let own = section.environment.into_iter();
    AcpSettings {
        name: name.to_owned(),
        command: section.command,
        environment: inherited
            .cloned()
            .chain(own.map(|(name, value)| (name.into(), value.into())))
            .collect(),
        description: section.description,
        if_missing,
        write_below: section.write_below,
        ..AcpSettings::default()
    }
}

/// The default agent.
pub(super) fn default_agent(
    chosen: Option<&str>,
    agents: &BTreeMap<String, Arc<dyn Agent>>,
) -> Result<String, String> {
    match chosen {
        Some(name) if agents.contains_key(name) => Ok(name.to_owned()),
        Some(name) => Err(unknown_default(name, agents.keys().map(String::as_str))),
        None => {
            let is_ready = |agent: &Arc<dyn Agent>| agent.info().readiness == Readiness::Ready;
            let name = match agents.get(MODEL).is_some_and(is_ready) {
                true => MODEL,
                false => REHEARSAL,
            };
            Ok(name.to_owned())
        }
    }
}

fn unknown_default<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    format!("`sessions.default_agent` is `{name}`, and there are only: {known}")
}

/// The same, before any agent is created.
pub(crate) fn check_default_agent(
    configuration: &Configuration,
    variables: Variables<'_>,
) -> Result<(), String> {
    let programs = programs(&configuration.agents, variables);
    let mut known: Vec<&str> = programs
        .keys()
        .map(String::as_str)
        .chain([MODEL, REHEARSAL])
        .collect();
    known.sort_unstable();
    match configuration.sessions.default_agent.as_deref() {
        Some(name) if !known.contains(&name) => Err(unknown_default(name, known.into_iter())),
        _ => Ok(()),
    }
}

/// The built-in agents.
pub(super) fn built_in(
    settings: ModelSettings,
    breakers: &kernel::CircuitBreaker,
    clock: &Arc<dyn kernel::Clock>,
) -> BTreeMap<String, Arc<dyn Agent>> {
    BTreeMap::from([
        (REHEARSAL.to_owned(), Rehearsal::new(REHEARSAL)),
        (
            MODEL.to_owned(),
            ModelAgent::new(settings, breakers.clone(), Arc::clone(clock)),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn what_is_set_for_tidelock_goes_before_the_file_and_that_before_what_is_set_for_everybody() {
        let file = ModelSection {
            base_url: Some("http://file/v1".to_owned()),
            model: Some("file".to_owned()),
            ..ModelSection::default()
        };
        let everybody = ("OPENAI_BASE_URL", "http://everybody/v1");
        let ours = [
            ("TIDELOCK_MODEL_BASE_URL", "http://ours/v1"),
            ("TIDELOCK_MODEL", "ours"),
        ];
        let none = ModelSection::default();
        let usual = ModelSettings::default().base_url;
        for (section, set, base_url, model) in [
            (&none, vec![], usual.as_str(), ""),
            (&none, vec![everybody], "http://everybody/v1", ""),
            (&none, vec![("OPENAI_BASE_URL", "")], usual.as_str(), ""),
            (&file, vec![everybody], "http://file/v1", "file"),
            (&file, vec![everybody, ours[0], ours[1]], "http://ours/v1", "ours"),
        ] {
            let set = variables(&set);
            let found = model_settings(section, Variables(&set)).unwrap();
            let found = (found.base_url.as_str(), found.model.as_str());
            assert_eq!(found, (base_url, model), "{set:?}");
        }
    }

    #[test]
    fn a_key_comes_from_where_it_is_said_to_be_and_commands_do_not_get_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "of the file\n").unwrap();
        let set = variables(&[("OPENAI_API_KEY", "usual"), ("MY_KEY", "mine"), ("PATH", "/bin")]);
        let named = |name: &str| ModelSection {
            key_env: Some(name.to_owned()),
            ..ModelSection::default()
        };
        let in_file = |path: PathBuf| ModelSection {
            key_file: Some(path),
            ..ModelSection::default()
        };
        for (section, expected) in [
            (ModelSection::default(), Some("usual")),
            (named("MY_KEY"), Some("mine")),
            (named("NOT_SET"), None),
            (in_file(path), Some("of the file")),
        ] {
            let found = model_settings(&section, Variables(&set)).unwrap().key;
            assert_eq!(found, expected.and_then(ApiKey::new), "{section:?}");
        }
        let missing = in_file(directory.path().join("none"));
        assert!(matches!(
            model_settings(&missing, Variables(&set)),
            Err(ConfigurationError::Unreadable { .. })
        ));
        let mine = Configuration {
            model: named("MY_KEY"),
            ..Configuration::default()
        };
        for (configuration, expected) in [
            (Configuration::default(), ["MY_KEY", "PATH"]),
            (mine, ["OPENAI_API_KEY", "PATH"]),
        ] {
            let left = for_commands(&set, &configuration);
            let names: Vec<_> = left.iter().map(|(name, _)| name.to_str().unwrap()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn limits_and_prices_are_in_millionths_inside() {
        let section = ModelSection {
            max_cost: Some(0.5),
            input_price: Some(3.0),
            max_time_seconds: Some(7),
            ..ModelSection::default()
        };
        let found = model_settings(&section, Variables(&[])).unwrap();
        assert_eq!(
            (found.limits.cost_micros, found.limits.time, found.prices),
            (
                Some(500_000),
                Duration::from_secs(7),
                Some(ModelPrices {
                    input_micros: 3_000_000,
                    output_micros: 0
                })
            )
        );
    }

    /// A directory with executable programs; those marked with a minus aren't executable.
    fn programs_in(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let (name, mode) = match name.strip_prefix('-') {
                Some(name) => (name, 0o644),
                None => (*name, 0o755),
            };
            let path = directory.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        directory
    }

    #[test]
    fn what_is_configured_goes_before_what_is_installed() {
        let directory = programs_in(&["opencode", "gemini", "-codex-acp"]);
        let path = directory.path().to_str().unwrap();
        let set = variables(&[("PATH", path), ("HOME", "/h"), ("TIDELOCK_HOME", "/t")]);
        let mine = AgentSection {
            command: vec!["mine".to_owned()],
            environment: BTreeMap::from([("PATH".to_owned(), "/mine".to_owned())]),
            ..AgentSection::default()
        };
        let configured = BTreeMap::from([("gemini".to_owned(), mine.clone())]);
        let found = programs(&configured, Variables(&set));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["gemini", "opencode"]);
        let mine = Program {
            section: mine,
            if_missing: None,
        };
        assert_eq!(found["gemini"], mine);
        let settings = acp_settings("gemini", mine, Variables(&set));
        let environment = [("HOME", "/h"), ("PATH", "/mine")];
        assert_eq!(
            settings.environment,
            variables(&environment).into_iter().collect::<BTreeMap<_, _>>()
        );
    }

    /// The installed programs, and what is found: a name, a command, and what is missing.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str, Option<&'a str>)]);

    #[test]
    fn installed_agents_are_found_and_what_is_missing_for_them_is_said() {
        let npm = |package: &str, program: &str| {
            let install = format!("npm install -g @agentclientprotocol/{package}");
            format!("`{program}` is installed. Install its ACP adapter: {install}")
        };
        let claude = npm("claude-agent-acp", "claude");
        let codex = npm("codex-acp", "codex");
        let cases: &[Case<'_>] = &[
            (&[], &[]),
            (
                &["claude"],
                &[("claude", "claude-agent-acp", Some(claude.as_str()))],
            ),
            (&["claude-code-acp"], &[("claude", "DIR/claude-code-acp", None)]),
            (
                &["claude", "claude-agent-acp", "claude-code-acp"],
                &[("claude", "DIR/claude-agent-acp", None)],
            ),
            (
                &["codex", "-codex-acp", "opencode"],
                &[
                    ("codex", "codex-acp", Some(codex.as_str())),
                    ("opencode", "DIR/opencode acp", None),
                ],
            ),
            (
                &["qwen", "goose", "cursor-agent", "copilot", "gemini"],
                &[
                    ("copilot", "DIR/copilot --acp", None),
                    ("cursor", "DIR/cursor-agent acp", None),
                    ("gemini", "DIR/gemini --experimental-acp", None),
                    ("goose", "DIR/goose acp", None),
                    ("qwen", "DIR/qwen --acp", None),
                ],
            ),
        ];
        for (installed, expected) in cases {
            let directory = programs_in(installed);
            let path = directory.path().to_str().unwrap();
            let set = variables(&[("PATH", path)]);
            let found: Vec<_> = programs(&BTreeMap::new(), Variables(&set))
                .into_iter()
                .map(|(name, program)| {
                    let command = program.section.command.join(" ").replace(path, "DIR");
                    (name, command, program.if_missing)
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, command, missing)| {
                    (
                        (*name).to_owned(),
                        (*command).to_owned(),
                        missing.map(str::to_owned),
                    )
                })
                .collect();
            assert_eq!(found, expected, "{installed:?}");
        }
    }

    #[test]
    fn a_model_that_is_ready_is_asked_unless_somebody_has_chosen() {
        let clock = kernel::SystemClock::shared();
        let breakers = kernel::CircuitBreaker::new(kernel::BreakerSettings::default(), Arc::clone(&clock));
        let breakers = breakers.unwrap();
        let agents = |settings| built_in(settings, &breakers, &clock);
        let ready = ModelSettings {
            key: ApiKey::new("key"),
            model: "some".to_owned(),
            ..ModelSettings::default()
        };
        for (chosen, settings, expected) in [
            (None, ModelSettings::default(), Ok("rehearsal")),
            (None, ready.clone(), Ok("model")),
            (Some("rehearsal"), ready.clone(), Ok("rehearsal")),
            (
                Some("nobody"),
                ready,
                Err("`sessions.default_agent` is `nobody`, and there are only: model, rehearsal"),
            ),
        ] {
            let found = default_agent(chosen, &agents(settings));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{chosen:?}");
        }
    }
}
