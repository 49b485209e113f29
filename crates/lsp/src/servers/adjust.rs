//! Options of a few servers that depend on the root, the program that was found, and trust.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::definition::{Adjust, ServerDefinition};
use super::detect::{FoundProgram, LocalPrograms};

/// The options and settings that a server is started with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) initialization: Option<Value>,
    pub(super) settings: Option<Value>,
}

/// Computes them. Values in a configuration stay; only missing ones are filled in.
pub(super) fn options(
    definition: &ServerDefinition,
    root: &Path,
    workspace: &Path,
    found: Option<&FoundProgram>,
    local: LocalPrograms,
) -> Options {
    let mut options = Options {
        initialization: definition.initialization_options.clone(),
        settings: definition.settings.clone(),
    };
    let in_workspace = |relative: &str| {
        let mut upwards = root
            .ancestors()
            .take_while(|directory| directory.starts_with(workspace));
        let found = upwards.find_map(|directory| existing(directory.join(relative)));
        found.filter(|_| local == LocalPrograms::Use)
    };
    match definition.adjust {
        Adjust::Nothing => {}
        Adjust::TypeScript => {
            // By default, the server would run the repository's TypeScript. In a trusted workspace that is
            // fine, and its own version is used; otherwise, or if it has no version, the one next to the
            // server is used.
            let own = in_workspace("node_modules/typescript/lib/tsserver.js");
            let beside = found.and_then(|found| beside(&found.program, "typescript/lib/tsserver.js"));
            if let Some(path) = own.or(beside) {
                fill(&mut options.initialization, &["tsserver", "path"], json!(path));
            }
        }
        Adjust::TypeScriptLibrary => {
            let own = in_workspace("node_modules/typescript/lib/typescript.js");
            let beside = found.and_then(|found| beside(&found.program, "typescript/lib/typescript.js"));
            if let Some(library) = own.or(beside).as_deref().and_then(Path::parent) {
                fill(
                    &mut options.initialization,
                    &["typescript", "tsdk"],
                    json!(library),
                );
            }
        }
        Adjust::PythonInterpreter => {
            // The server runs the interpreter to ask for its paths, so it must be a trusted one.
            let interpreter = in_workspace(".venv/bin/python").or_else(|| in_workspace("venv/bin/python"));
            if let Some(interpreter) = interpreter {
                fill(
                    &mut options.settings,
                    &["python", "pythonPath"],
                    json!(interpreter),
                );
            }
        }
        Adjust::TrustFlag => {
            let is_trusted = local == LocalPrograms::Use;
            fill(&mut options.initialization, &["isTrusted"], json!(is_trusted));
        }
    }
    options
}

/// A file of another package that was installed together with an npm program.
fn beside(program: &Path, package_file: &str) -> Option<PathBuf> {
    let program = std::fs::canonicalize(program).ok()?;
    let mut upwards = program.ancestors().skip(1);
    upwards.find_map(|directory| {
        let modules = match directory.file_name() {
            Some(name) if name == "node_modules" => directory.to_path_buf(),
            _ => directory.join("node_modules"),
        };
        existing(modules.join(package_file))
    })
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
}

/// Sets a key unless it is set. A value on the path that isn't an object was chosen by somebody, and stays.
fn fill(value: &mut Option<Value>, keys: &[&str], filled: Value) {
    let mut place = value.get_or_insert_with(|| json!({}));
    for key in keys {
        let Value::Object(object) = place else { return };
        place = object.entry(*key).or_insert_with(|| json!({}));
    }
    if place.as_object().is_some_and(serde_json::Map::is_empty) {
        *place = filled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_open_is_filled_in() {
        let cases = [
            (None, json!({"a": {"b": 1}})),
            (Some(json!({"a": {"c": 2}})), json!({"a": {"b": 1, "c": 2}})),
            (Some(json!({"a": {"b": 5}})), json!({"a": {"b": 5}})),
            (Some(json!({"a": 3})), json!({"a": 3})),
            (Some(json!([])), json!([])),
        ];
        for (mut value, expected) in cases {
            fill(&mut value, &["a", "b"], json!(1));
            assert_eq!(value, Some(expected));
        }
    }
}
