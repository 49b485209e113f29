//! Every setting from `config.toml` and environment variables, with its value and source.

use std::ffi::OsString;
use std::path::Path;

use ::context::BUILT_IN_STRATEGIES as BUILT_IN;
use protocol::{Setting, SettingSource};
use serde_json::{Value, json};

use super::keys::{ANY_NAME, InForce, KEYS, Key};
use super::places::Places;
use super::{Configuration, ConfigurationError, Written, load};
use crate::sessions::{Variables, check_default_agent, model_settings};

/// Shown in place of a secret.
pub(super) const NOT_SHOWN: &str = "(not shown)";

/// The settings that a daemon would use with this file and these variables. It doesn't start or change anything.
///
/// # Errors
/// The file, or the key file that it names, can't be used.
pub fn settings_of(
    file: Option<&Path>,
    environment: &[(OsString, OsString)],
) -> Result<Vec<Setting>, ConfigurationError> {
    let written = load(file)?;
    check_default_agent(&written.configuration, Variables(environment)).map_err(|what| {
        ConfigurationError::Invalid {
            path: file.map(Path::to_owned).unwrap_or_default(),
            what,
        }
    })?;
    survey(&written, environment)
}

pub(crate) fn survey(
    written: &Written,
    environment: &[(OsString, OsString)],
) -> Result<Vec<Setting>, ConfigurationError> {
    let Written {
        configuration,
        places,
    } = written;
    let variables = Variables(environment);
    let model = model_settings(&configuration.model, variables)?;
    let has_key = model.key.is_some();
    let mut in_force = configuration.clone();
    in_force.machine.name = configuration.machine.name(environment);
    let now = InForce::new(in_force, model);
    let mut settings = Vec::new();
    for key in KEYS.iter().filter(|key| !key.path.contains(super::keys::EACH)) {
        for (path, name) in paths(key, configuration) {
            settings.push(Setting {
                value: (key.in_force)(&now, name),
                source: source(key, &path, places, variables),
                key: path,
                meaning: key.meaning.to_owned(),
            });
            if key.path == "model.key_file" {
                settings.push(secret(&now, has_key, places));
            }
        }
    }
    Ok(settings)
}

/// The paths of a key in a file, each with the user-chosen name in it.
fn paths<'a>(key: &Key, configuration: &'a Configuration) -> Vec<(String, &'a str)> {
    if !key.is_template() {
        return vec![(key.path.to_owned(), "")];
    }
    let names: Vec<&str> = match key.path.starts_with("agents.") {
        true => configuration.agents.keys().map(String::as_str).collect(),
        false => BUILT_IN.to_vec(),
    };
    let named = |name: &'a str| (key.path.replacen(ANY_NAME, name, 1), name);
    names.into_iter().map(named).collect()
}

fn source(key: &Key, path: &str, places: &Places, variables: Variables<'_>) -> SettingSource {
    let set = |name: Option<&'static str>| {
        let name = name.filter(|name| variables.text(name).is_some())?;
        Some(SettingSource::Environment {
            variable: name.to_owned(),
        })
    };
    let written = places.get(path).map(|line| SettingSource::File { line: *line });
    set(key.before_file)
        .or(written)
        .or_else(|| set(key.after_file))
        .unwrap_or(SettingSource::Default)
}

/// The API key isn't a setting of the file, but people look for it here: shows whether it is set, and where.
fn secret(now: &InForce, has_key: bool, places: &Places) -> Setting {
    let source = match (&now.key_env, has_key, places.get("model.key_file")) {
        (_, true, Some(line)) => SettingSource::File { line: *line },
        (Some(variable), true, _) => SettingSource::Environment {
            variable: variable.clone(),
        },
        _ => SettingSource::Default,
    };
    Setting {
        key: "model.key".to_owned(),
        value: match has_key {
            true => json!(NOT_SHOWN),
            false => Value::Null,
        },
        source,
        meaning: "The key itself, from one of the two; it is never written into the file.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn check(text: &str, set: &[(&str, &str)], expected: &[(&str, Value, &str)]) {
        let settings = survey(&parse(text).unwrap(), &variables(set)).unwrap();
        for (key, value, source) in expected {
            let found = settings.iter().find(|setting| setting.key == *key);
            let found = found.unwrap_or_else(|| panic!("there is no {key}"));
            let from = match &found.source {
                SettingSource::Default => "default".to_owned(),
                SettingSource::File { line } => format!("line {line}"),
                SettingSource::Environment { variable } => variable.clone(),
                SettingSource::CommandLine { option } => option.clone(),
            };
            assert_eq!((&found.value, from.as_str()), (value, *source), "{key}");
        }
    }

    #[test]
    fn each_value_is_the_one_that_is_used_and_says_where_it_is_from() {
        let file = "[model]\nbase_url = \"https://me:secret@file/v1\"\nmodel = \"of the file\"\nmax_cost = 2.5\n\
                    [agents.mine]\ncommand = [\"a\"]\nenvironment = { KEY = \"hidden\" }\n\
                    [context.strategies.recent]\nweight = 0.5\n";
        check(
            "",
            &[],
            &[
                ("model.base_url", json!("https://api.openai.com/v1"), "default"),
                ("model.model", Value::Null, "default"),
                ("model.key_env", json!("OPENAI_API_KEY"), "default"),
                ("model.key", Value::Null, "default"),
                ("sessions.max_turns", json!(4096), "default"),
                ("context.strategies.recent.weight", json!(1.0), "default"),
            ],
        );
        check(
            file,
            &[
                ("OPENAI_BASE_URL", "http://all/v1"),
                ("TIDELOCK_MODEL", "set"),
                ("OPENAI_API_KEY", "k"),
            ],
            &[
                ("model.base_url", json!("https://(not shown)@file/v1"), "line 2"),
                ("model.model", json!("set"), "TIDELOCK_MODEL"),
                ("model.max_cost", json!(2.5), "line 4"),
                ("model.key", json!("(not shown)"), "OPENAI_API_KEY"),
                ("agents.mine.command", json!(["a"]), "line 6"),
                ("agents.mine.environment", json!({"KEY": "(not shown)"}), "line 7"),
                ("agents.mine.description", json!(""), "default"),
                ("context.strategies.recent.weight", json!(0.5), "line 9"),
                ("context.strategies.keyword.weight", json!(1.0), "default"),
            ],
        );
        check(
            "",
            &[("OPENAI_BASE_URL", "http://all/v1")],
            &[("model.base_url", json!("http://all/v1"), "OPENAI_BASE_URL")],
        );
    }

    #[test]
    fn a_default_agent_that_nobody_knows_is_found_without_a_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "[sessions]\ndefault_agent = \"nobody\"\n").unwrap();
        let found = settings_of(Some(&path), &[]).unwrap_err().to_string();
        assert!(found.contains("`sessions.default_agent` is `nobody`"), "{found}");
    }
}
