//! The configured servers, and the trust that lets a repository configure some.

use std::path::Path;

use protocol::{Availability, ConfiguredServer, LspConfig, TrustConfig, Trusted};

use crate::cli::{ConfigArguments, TrustArguments};
use crate::client::{Client, ClientError, path_segment};
use crate::commands::shell::quoted;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list};
use crate::paths;
use crate::printable::{Answer, cut, one_line, printable};
use crate::start::Repeat;
use crate::units::format_count;

/// The width of a column with languages or install instructions.
const COLUMN_CHARACTERS: usize = 40;

pub(super) fn show(arguments: &ConfigArguments, client: &Client) -> Result<Report, Failure> {
    let directory = match &arguments.directory {
        Some(directory) => paths::directory(directory)?,
        None => paths::directory(&paths::current_directory()?)?,
    };
    let config: Answer<LspConfig> = client.fetch(&path(&directory))?;
    let text = describe(client.palette(), &config);
    let notes = notes(&config);
    Ok(Report::shown(text, config).with_notes(notes))
}

pub(super) fn trust(arguments: &TrustArguments, client: &Client) -> Result<Report, Failure> {
    let path = paths::existing(&arguments.path)?;
    let hash = match &arguments.hash {
        Some(hash) => hash.clone(),
        None => current_hash(&path, client)?,
    };
    let request = TrustConfig { path, hash };
    let trusted: Answer<Trusted> = client.ask(Repeat::Harmless, |client| {
        client.post("/v1/lsp/config/trust", Some(&request))
    })?;
    let text = format!(
        "{} is now trusted in its current form.\n",
        one_line(&trusted.path)
    );
    Ok(Report::shown(text, trusted))
}

fn current_hash(path: &str, client: &Client) -> Result<String, Failure> {
    let workspace = match Path::new(path) {
        file if !file.is_dir() => file.parent().unwrap_or(file),
        directory => directory,
    };
    let answer: serde_json::Value = client.fetch(&self::path(&workspace.to_string_lossy()))?;
    let config: LspConfig = printable(&answer)?;
    Ok(config.hash)
}

/// The configuration for a directory, from a daemon that is already running.
pub(in crate::commands) fn read(directory: &Path, client: &Client) -> Result<LspConfig, ClientError> {
    let answer: serde_json::Value = client.get(&path(&directory.to_string_lossy()))?;
    printable(&answer)
}

fn path(directory: &str) -> String {
    format!("/v1/lsp/config?workspace={}", path_segment(directory))
}

fn describe(palette: Palette, config: &LspConfig) -> String {
    if config.servers.is_empty() {
        return "No language servers are configured.\n".to_owned();
    }
    let mut servers: Vec<&ConfiguredServer> = config.servers.iter().collect();
    // Usable servers come first; the sort is stable, so names stay in order.
    servers.sort_by_key(|server| rank(server));
    let found = config.servers.iter().filter(|server| rank(server) == 0).count();
    let total = format!(
        "{found} of {} can be started here.\n",
        format_count(config.servers.len() as u64, "server")
    );
    let heading = [
        "SERVER",
        "STATE",
        "LANGUAGES",
        "FROM",
        "PROGRAM, OR HOW TO GET IT",
    ];
    let rows = servers.into_iter().map(row).collect();
    list(palette, &heading, rows, "") + &total
}

fn rank(server: &ConfiguredServer) -> u8 {
    match (&server.availability, server.disabled) {
        (Availability::Found { .. }, false) => 0,
        (_, true) => 1,
        (Availability::Missing { .. }, false) => 2,
    }
}

/// One server: its name, whether it can be started, for what, from where, and how.
pub(in crate::commands) fn row(server: &ConfiguredServer) -> Vec<Cell> {
    let state = match (&server.availability, server.disabled) {
        (_, true) => Cell::toned("disabled", Tone::Quiet),
        (Availability::Found { .. }, false) => Cell::toned("found", Tone::Good),
        (Availability::Missing { .. }, false) => Cell::toned("missing", Tone::Warning),
    };
    let how = match &server.availability {
        Availability::Found { program, arguments } => {
            let words: Vec<&str> = [program.as_str()]
                .into_iter()
                .chain(arguments.iter().map(String::as_str))
                .collect();
            Cell::new(one_line(&words.join(" ")))
        }
        Availability::Missing { install } => Cell::toned(one_line(install), Tone::Quiet),
    };
    vec![
        Cell::new(one_line(&server.server)),
        state,
        Cell::new(cut(&server.languages.join(", "), COLUMN_CHARACTERS)),
        Cell::new(one_line(&server.source)),
        how,
    ]
}

/// Problems with files, and the command that trusts one.
fn notes(config: &LspConfig) -> Vec<String> {
    config
        .notes
        .iter()
        .map(|note| {
            let said = format!("{}: {}", one_line(&note.path), one_line(&note.message));
            match &note.hash {
                Some(hash) => {
                    let (path, hash) = (quoted(&one_line(&note.path)), quoted(&one_line(hash)));
                    format!("{said}; review it, then run: tidelock lsp trust {path} {hash}")
                }
                None => said,
            }
        })
        .collect()
}

#[cfg(test)]
pub(in crate::commands) mod tests {
    use protocol::ConfigNote;

    use super::*;

    pub(in crate::commands) fn configured(
        name: &str,
        languages: &[&str],
        availability: Availability,
    ) -> ConfiguredServer {
        ConfiguredServer {
            server: name.to_owned(),
            languages: languages.iter().map(|&language| language.to_owned()).collect(),
            role: "primary".to_owned(),
            source: "built-in".to_owned(),
            disabled: false,
            availability,
        }
    }

    pub(in crate::commands) fn found(program: &str) -> Availability {
        Availability::Found {
            program: program.to_owned(),
            arguments: vec!["--stdio".to_owned()],
        }
    }

    pub(in crate::commands) fn missing(install: &str) -> Availability {
        Availability::Missing {
            install: install.to_owned(),
        }
    }

    #[test]
    fn what_can_be_used_comes_first() {
        let config = LspConfig {
            workspace: "/w".to_owned(),
            trusted: false,
            hash: String::new(),
            servers: vec![
                configured(
                    "gopls",
                    &["go"],
                    missing("go install golang.org/x/tools/gopls@latest"),
                ),
                ConfiguredServer {
                    disabled: true,
                    ..configured("ruff", &["python"], found("/bin/ruff"))
                },
                configured("pyright", &["python"], found("/bin/pyright-langserver")),
            ],
            notes: Vec::new(),
        };
        insta::assert_snapshot!(describe(Palette::Plain, &config), @r"
        SERVER   STATE     LANGUAGES  FROM      PROGRAM, OR HOW TO GET IT
        pyright  found     python     built-in  /bin/pyright-langserver --stdio
        ruff     disabled  python     built-in  /bin/ruff --stdio
        gopls    missing   go         built-in  go install golang.org/x/tools/gopls@latest
        1 of 3 servers can be started here.
        ");
    }

    #[test]
    fn a_note_says_the_command_that_trusts_a_file() {
        let note = |path: &str, hash: Option<&str>| ConfigNote {
            path: path.to_owned(),
            message: "not trusted yet".to_owned(),
            hash: hash.map(str::to_owned),
        };
        let config = LspConfig {
            workspace: "/w".to_owned(),
            trusted: false,
            hash: String::new(),
            servers: Vec::new(),
            notes: vec![
                note("/w/.lsp.json", Some("3f7a")),
                note("/it's; rm/.lsp.json", Some("3f7a")),
                note("/u", None),
            ],
        };
        assert_eq!(
            notes(&config),
            [
                "/w/.lsp.json: not trusted yet; review it, then run: tidelock lsp trust /w/.lsp.json 3f7a",
                r"/it's; rm/.lsp.json: not trusted yet; review it, then run: tidelock lsp trust '/it'\''s; rm/.lsp.json' 3f7a",
                "/u: not trusted yet",
            ]
        );
    }
}
