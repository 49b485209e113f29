//! Language servers: which are installed and which are missing, starting with the languages of the current directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use protocol::{Availability, ConfiguredServer, LspConfig};
use serde_json::{Value, json};

use super::Check;
use crate::client::{Client, ClientError};
use crate::commands::lsp::{config_row, read_config};
use crate::error::chain;
use crate::output::{Palette, table};
use crate::units::format_count;

/// How many files and directories are scanned for their languages. A quick scan is enough: the first files show what
/// a directory is written in.
const GLANCE: usize = 2000;
const DEPTH: usize = 4;
/// Directories with third-party or generated files.
const FOREIGN: [&str; 6] = ["target", "node_modules", "vendor", "dist", "build", "__pycache__"];

/// The most common languages, by file extension. The daemon knows many more; this only decides what is shown first.
const LANGUAGES: [(&str, &[&str]); 22] = [
    ("c", &["c"]),
    ("cpp", &["cc", "cpp", "cxx", "h", "hh", "hpp"]),
    ("csharp", &["cs"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("go", &["go"]),
    ("haskell", &["hs"]),
    ("java", &["java"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("javascriptreact", &["jsx"]),
    ("kotlin", &["kt", "kts"]),
    ("lua", &["lua"]),
    ("php", &["php"]),
    ("python", &["py", "pyi"]),
    ("ruby", &["rb"]),
    ("rust", &["rs"]),
    ("scala", &["scala"]),
    ("shellscript", &["sh", "bash"]),
    ("swift", &["swift"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("typescriptreact", &["tsx"]),
    ("zig", &["zig"]),
];

pub(super) struct Section {
    pub(super) check: Check,
    /// A part of the report for people; empty if there is nothing to add.
    pub(super) text: String,
    pub(super) value: Value,
}

pub(super) fn look(palette: Palette, client: &Client) -> Section {
    let id = "language_servers";
    let only = |check: Check| Section {
        check,
        text: String::new(),
        value: Value::Null,
    };
    let Ok(directory) = std::env::current_dir().and_then(|directory| directory.canonicalize()) else {
        return only(Check::ok(id, "not checked because the current directory is gone"));
    };
    match read_config(&directory, client) {
        Ok(config) => describe(palette, &config, &languages_below(&directory)),
        Err(ClientError::Unreachable { .. }) => only(Check::ok(
            id,
            "unknown while no daemon is running; `tidelock up` starts it",
        )),
        Err(error) => only(Check::warning(
            id,
            chain(&error),
            "see `tidelock lsp config`, or the daemon's log",
        )),
    }
}

fn describe(palette: Palette, config: &LspConfig, here: &BTreeSet<&str>) -> Section {
    let is_for = |server: &&ConfiguredServer| {
        server
            .languages
            .iter()
            .any(|language| here.contains(language.as_str()))
    };
    let (for_here, others): (Vec<_>, Vec<_>) = config.servers.iter().partition(is_for);
    let mut text = String::new();
    if !config.servers.is_empty() {
        text.push_str("\nLanguage servers\n");
        let rows: Vec<_> = for_here.iter().map(|server| config_row(server)).collect();
        text.push_str(&table(palette, &rows));
        text.push_str(&elsewhere(&others));
    }
    let value = json!({ "here": here, "servers": config.servers });
    Section {
        check: judge(config, here),
        text,
        value,
    }
}

/// A language without any server is worth a warning. A missing second server is not.
fn judge(config: &LspConfig, here: &BTreeSet<&str>) -> Check {
    let id = "language_servers";
    let found = config.servers.iter().filter(|server| is_usable(server)).count();
    let total = format!(
        "{found} of {}",
        format_count(config.servers.len() as u64, "server")
    );
    let mut lacking = Vec::new();
    let mut advice = None;
    for language in here {
        let mut candidates = config
            .servers
            .iter()
            .filter(|server| server.languages.iter().any(|each| each == language))
            .peekable();
        if candidates.peek().is_none() || candidates.clone().any(is_usable) {
            continue;
        }
        lacking.push(*language);
        advice = advice.or_else(|| candidates.find_map(|server| install(server)));
    }
    match advice {
        Some(install) => Check::warning(
            id,
            format!(
                "{total} can be started; no server found for {}",
                lacking.join(", ")
            ),
            install,
        ),
        None => Check::ok(id, format!("{total} can be started")),
    }
}

fn is_usable(server: &ConfiguredServer) -> bool {
    !server.disabled && matches!(server.availability, Availability::Found { .. })
}

fn install(server: &ConfiguredServer) -> Option<&str> {
    match &server.availability {
        Availability::Missing { install } if !server.disabled => Some(install),
        _ => None,
    }
}

fn elsewhere(others: &[&ConfiguredServer]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let found: Vec<&str> = others
        .iter()
        .filter(|server| is_usable(server))
        .map(|server| server.server.as_str())
        .collect();
    let known = format_count(others.len() as u64, "server");
    let there = match found.len() {
        0 => "none found".to_owned(),
        _ => format!("found: {}", found.join(", ")),
    };
    format!("For other languages: {known} known, {there}. `tidelock lsp config` lists them all.\n")
}

/// The languages of the files in a directory, from a quick scan.
fn languages_below(directory: &Path) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((directory, depth)) = waiting.pop() {
        // Skip directories that cannot be read.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > GLANCE {
                return found;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < DEPTH && !name.starts_with('.') && !FOREIGN.contains(&&*name) {
                waiting.push((entry.path(), depth + 1));
            } else if !is_directory {
                found.extend(language_of(&entry.path()));
            }
        }
    }
    found
}

fn language_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    LANGUAGES
        .iter()
        .find(|(_, extensions)| extensions.contains(&extension))
        .map(|(language, _)| *language)
}

#[cfg(test)]
mod tests {
    use crate::commands::lsp::config_tests::{configured, found, missing};

    use super::super::State;
    use super::*;

    fn config() -> LspConfig {
        LspConfig {
            workspace: "/w".to_owned(),
            trusted: false,
            hash: String::new(),
            servers: vec![
                configured("gopls", &["go"], missing("go install gopls")),
                configured("pyright", &["python"], missing("npm install -g pyright")),
                configured("ruff", &["python"], found("/bin/ruff")),
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_is_for_this_directory_comes_first() {
        let section = describe(Palette::Plain, &config(), &BTreeSet::from(["python"]));
        insta::assert_snapshot!(section.text, @r"

        Language servers
        pyright  missing  python  built-in  npm install -g pyright
        ruff     found    python  built-in  /bin/ruff --stdio
        For other languages: 1 server known, none found. `tidelock lsp config` lists them all.
        ");
        assert_eq!(
            section.check,
            Check::ok("language_servers", "1 of 3 servers can be started")
        );
        assert_eq!(section.value["here"], json!(["python"]));
    }

    #[test]
    fn a_language_without_any_server_is_a_warning() {
        let check = judge(&config(), &BTreeSet::from(["go", "python", "zig"]));
        assert_eq!(
            check,
            Check::warning(
                "language_servers",
                "1 of 3 servers can be started; no server found for go",
                "go install gopls"
            )
        );
        assert_eq!(judge(&config(), &BTreeSet::new()).state, State::Ok);
    }

    #[test]
    fn languages_are_seen_in_files_that_are_ours() {
        let temporary = tempfile::tempdir().unwrap();
        for path in [
            "a.rs",
            "src/b.py",
            "src/deep/c.tsx",
            "node_modules/d.js",
            ".git/e.go",
            "Makefile",
            "f.RS",
        ] {
            let path = temporary.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(
            languages_below(temporary.path()),
            BTreeSet::from(["python", "rust", "typescriptreact"])
        );
        assert_eq!(languages_below(Path::new("/nowhere")), BTreeSet::new());
    }
}
