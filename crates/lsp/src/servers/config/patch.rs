//! The configuration of one server, as a patch over its definition.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::super::definition::{
    CommandLine, Enablement, LanguageFiles, Origin, Role, ServerDefinition, ServerLimits, Transport,
};
use super::super::roots::{RootRule, RootStep};

/// Everything is optional: missing values stay unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerPatch {
    pub(crate) command: Option<CommandLine>,
    /// Language ids, each with file name suffixes (with a leading dot) or whole file names.
    pub(crate) files: Option<BTreeMap<String, Vec<String>>>,
    /// Markers in order of preference; those in one group are equal.
    pub(crate) roots: Option<Vec<Vec<String>>>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) initialization_options: Option<Value>,
    pub(crate) settings: Option<Value>,
    pub(crate) transport: Option<Transport>,
    pub(crate) role: Option<Role>,
    pub(crate) enablement: Option<Enablement>,
    pub(crate) limits: ServerLimits,
}

impl ServerPatch {
    pub(crate) fn apply(self, definition: &mut ServerDefinition, origin: &Origin) {
        definition.origin = origin.clone();
        if self.command.is_some() || matches!(self.transport, Some(Transport::Tcp(_))) {
            definition.command_origin = origin.clone();
        }
        if let Some(command) = self.command {
            definition.commands = vec![command];
        }
        if let Some(files) = self.files {
            definition.languages = files.into_iter().map(language).collect();
        }
        if let Some(groups) = self.roots {
            definition.roots = RootRule {
                steps: groups.into_iter().map(RootStep::Nearest).collect(),
            };
        }
        if let Some(directory) = self.directory {
            definition.roots = RootRule {
                steps: vec![RootStep::Directory(directory)],
            };
        }
        definition.environment.extend(self.environment);
        lay_over(
            &mut definition.initialization_options,
            self.initialization_options,
        );
        lay_over(&mut definition.settings, self.settings);
        if let Some(transport) = self.transport {
            definition.transport = transport;
        }
        if let Some(role) = self.role {
            definition.role = role;
        }
        if let Some(enablement) = self.enablement {
            definition.enablement = enablement;
        }
        let (limits, said) = (&mut definition.limits, self.limits);
        limits.startup = said.startup.or(limits.startup);
        limits.request = said.request.or(limits.request);
        limits.shutdown = said.shutdown.or(limits.shutdown);
        limits.idle = said.idle.or(limits.idle);
        limits.restarts = said.restarts.or(limits.restarts);
    }
}

fn language((id, files): (String, Vec<String>)) -> LanguageFiles {
    let (extensions, names) = files.into_iter().partition(|file| file.starts_with('.'));
    LanguageFiles {
        id: Arc::from(id),
        extensions,
        names,
    }
}

fn lay_over(below: &mut Option<Value>, above: Option<Value>) {
    match (below.as_mut(), above) {
        (_, None) => {}
        (Some(below), Some(above)) => merge(below, above),
        (None, above) => *below = above,
    }
}

/// Objects are merged key by key, `null` removes a key, and everything else replaces the old value.
fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                if value.is_null() {
                    below.remove(&key);
                } else {
                    merge(below.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_laid_over_each_other() {
        let cases = [
            (None, None, None),
            (Some(json!({"a": 1})), None, Some(json!({"a": 1}))),
            (None, Some(json!(7)), Some(json!(7))),
            (
                Some(json!({"a": {"b": 1, "c": 2}, "d": [1]})),
                Some(json!({"a": {"b": null, "e": 3}, "d": [2], "f": {"g": 4}})),
                Some(json!({"a": {"c": 2, "e": 3}, "d": [2], "f": {"g": 4}})),
            ),
            (Some(json!({"a": 1})), Some(json!([1])), Some(json!([1]))),
        ];
        for (mut below, above, expected) in cases {
            let shown = format!("{below:?} under {above:?}");
            lay_over(&mut below, above);
            assert_eq!(below, expected, "{shown}");
        }
    }
}
