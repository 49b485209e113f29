//! The clients: where each keeps its configuration, and how an entry looks there. Supporting another client means
//! adding a row.

use super::entry::{Entry, Field};
use super::format::Format;
use crate::cli::JoinClient;

/// The variable that holds the token for clients that use HTTP. The token is never written into a configuration.
pub(super) const TOKEN_VARIABLE: &str = "TIDELOCK_TOKEN";

#[derive(Debug)]
pub(crate) struct Client {
    pub(super) id: JoinClient,
    /// Its name on the command line and in `doctor`.
    pub(crate) word: &'static str,
    pub(crate) check: &'static str,
    pub(crate) title: &'static str,
    /// The client counts as installed if any of these programs is on the PATH.
    pub(super) programs: &'static [&'static str],
    /// The user's configuration: the first of these that exists, or else the first.
    pub(super) user: &'static [UserFile],
    /// A project's configuration, relative to its root.
    pub(super) project: &'static [&'static str],
    pub(super) format: Format,
    pub(super) table: &'static [&'static str],
    pub(super) entry: fn(&Program) -> Entry,
    /// `None` if the token would have to be written into the file.
    pub(super) http: Option<fn(&str) -> Entry>,
    /// The table for agents that speak the Agent Client Protocol.
    pub(super) agents: Option<&'static [&'static str]>,
    pub(super) passes: Passes,
    /// The beginning of the client's own command for this: for the user, and for a project.
    pub(super) own: Option<[&'static str; 2]>,
}

/// A configuration file of the user.
#[derive(Debug)]
pub(super) struct UserFile {
    pub(super) base: Base,
    pub(super) path: &'static str,
}

/// The directory that a user path is relative to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, or `.config` in the home directory.
    Config,
    /// A variable of the client, or a directory in the home directory.
    Variable(&'static str, &'static str),
}

/// Which of our variables a client passes on to the programs it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    Everything,
    /// Only those that the entry names.
    Named,
    /// Undocumented, so we write them into the entry.
    Unsure,
}

/// What the client should start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Variables to pass on unchanged.
    pub(super) passed: Vec<String>,
}

const fn home(path: &'static str) -> UserFile {
    UserFile {
        base: Base::Home,
        path,
    }
}

const fn config(path: &'static str) -> UserFile {
    UserFile {
        base: Base::Config,
        path,
    }
}

const MCP_SERVERS: &[&str] = &["mcpServers"];

pub(crate) const CLIENTS: &[Client] = &[
    Client {
        id: JoinClient::Claude,
        word: "claude",
        check: "client_claude",
        title: "Claude Code",
        programs: &["claude"],
        user: &[UserFile {
            base: Base::Variable("CLAUDE_CONFIG_DIR", ""),
            path: ".claude.json",
        }],
        project: &[".mcp.json"],
        format: Format::Json,
        table: MCP_SERVERS,
        entry: typed,
        http: Some(|url| remote("http", url, "${TIDELOCK_TOKEN}")),
        agents: None,
        passes: Passes::Everything,
        own: Some(["claude mcp add --scope user", "claude mcp add --scope project"]),
    },
    Client {
        id: JoinClient::Codex,
        word: "codex",
        check: "client_codex",
        title: "Codex",
        programs: &["codex"],
        user: &[UserFile {
            base: Base::Variable("CODEX_HOME", ".codex"),
            path: "config.toml",
        }],
        project: &[".codex/config.toml"],
        format: Format::Toml,
        table: &["mcp_servers"],
        entry: codex,
        http: Some(|url| {
            Entry(vec![
                ("url", text(url)),
                ("bearer_token_env_var", text(TOKEN_VARIABLE)),
            ])
        }),
        agents: None,
        passes: Passes::Named,
        own: None,
    },
    Client {
        id: JoinClient::Opencode,
        word: "opencode",
        check: "client_opencode",
        title: "opencode",
        programs: &["opencode"],
        user: &[
            config("opencode/opencode.json"),
            config("opencode/opencode.jsonc"),
        ],
        project: &["opencode.json", "opencode.jsonc"],
        format: Format::Json,
        table: &["mcp"],
        entry: opencode,
        http: Some(|url| {
            let mut entry = remote("remote", url, "{env:TIDELOCK_TOKEN}");
            entry.0.push(("enabled", Field::Flag(true)));
            entry
        }),
        agents: None,
        passes: Passes::Everything,
        own: None,
    },
    Client {
        id: JoinClient::Zed,
        word: "zed",
        check: "client_zed",
        title: "Zed",
        programs: &["zed", "zeditor"],
        user: &[config("zed/settings.json")],
        project: &[".zed/settings.json"],
        format: Format::Json,
        table: &["context_servers"],
        entry: zed,
        http: None,
        agents: Some(&["agent_servers"]),
        passes: Passes::Everything,
        own: None,
    },
    Client {
        id: JoinClient::Vscode,
        word: "vscode",
        check: "client_vscode",
        title: "Visual Studio Code",
        programs: &["code"],
        user: &[config("Code/User/mcp.json")],
        project: &[".vscode/mcp.json"],
        format: Format::Json,
        table: &["servers"],
        entry: typed,
        http: Some(|url| remote("http", url, "${env:TIDELOCK_TOKEN}")),
        agents: None,
        passes: Passes::Everything,
        own: None,
    },
    Client {
        id: JoinClient::Cursor,
        word: "cursor",
        check: "client_cursor",
        title: "Cursor",
        programs: &["cursor", "cursor-agent"],
        user: &[home(".cursor/mcp.json")],
        project: &[".cursor/mcp.json"],
        format: Format::Json,
        table: MCP_SERVERS,
        entry: plain,
        http: Some(|url| headed("url", url, "${env:TIDELOCK_TOKEN}")),
        agents: None,
        passes: Passes::Unsure,
        own: None,
    },
    Client {
        id: JoinClient::Gemini,
        word: "gemini",
        check: "client_gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        user: &[home(".gemini/settings.json")],
        project: &[".gemini/settings.json"],
        format: Format::Json,
        table: MCP_SERVERS,
        entry: plain,
        http: Some(|url| headed("httpUrl", url, "${TIDELOCK_TOKEN}")),
        agents: None,
        passes: Passes::Unsure,
        own: None,
    },
    Client {
        id: JoinClient::Goose,
        word: "goose",
        check: "client_goose",
        title: "goose",
        programs: &["goose"],
        user: &[config("goose/config.yaml")],
        project: &[],
        format: Format::Yaml,
        table: &["extensions"],
        entry: goose,
        http: Some(|url| {
            let mut entry = extension("streamable_http");
            entry.0.push(("uri", text(url)));
            entry.0.push(("headers", authorization("${TIDELOCK_TOKEN}")));
            entry
                .0
                .push(("env_keys", Field::List(vec![TOKEN_VARIABLE.to_owned()])));
            entry
        }),
        agents: None,
        passes: Passes::Everything,
        own: None,
    },
    Client {
        id: JoinClient::Windsurf,
        word: "windsurf",
        check: "client_windsurf",
        title: "Windsurf",
        programs: &["windsurf"],
        user: &[home(".codeium/windsurf/mcp_config.json")],
        project: &[],
        format: Format::Json,
        table: MCP_SERVERS,
        entry: plain,
        http: Some(|url| headed("serverUrl", url, "${env:TIDELOCK_TOKEN}")),
        agents: None,
        passes: Passes::Unsure,
        own: None,
    },
];

pub(super) fn of(id: JoinClient) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}

/// An agent that an editor starts over the Agent Client Protocol.
pub(super) fn agent(program: &Program) -> Entry {
    let mut entry = Entry(vec![("type", text("custom"))]);
    entry.0.extend(zed(program).0);
    entry
}

fn text(text: &str) -> Field {
    Field::Text(text.to_owned())
}

fn plain(program: &Program) -> Entry {
    let mut entry = Entry(vec![
        ("command", text(&program.command)),
        ("args", Field::List(program.arguments.clone())),
    ]);
    if !program.environment.is_empty() {
        entry.0.push(("env", Field::Pairs(program.environment.clone())));
    }
    entry
}

fn typed(program: &Program) -> Entry {
    let mut entry = Entry(vec![("type", text("stdio"))]);
    entry.0.extend(plain(program).0);
    entry
}

fn codex(program: &Program) -> Entry {
    let mut entry = plain(program);
    if !program.passed.is_empty() {
        entry.0.push(("env_vars", Field::List(program.passed.clone())));
    }
    entry
}

fn opencode(program: &Program) -> Entry {
    let mut command = vec![program.command.clone()];
    command.extend(program.arguments.iter().cloned());
    let mut entry = Entry(vec![("type", text("local")), ("command", Field::List(command))]);
    if !program.environment.is_empty() {
        entry
            .0
            .push(("environment", Field::Pairs(program.environment.clone())));
    }
    entry.0.push(("enabled", Field::Flag(true)));
    entry
}

fn zed(program: &Program) -> Entry {
    Entry(vec![
        ("command", text(&program.command)),
        ("args", Field::List(program.arguments.clone())),
        ("env", Field::Pairs(program.environment.clone())),
    ])
}

fn extension(kind: &str) -> Entry {
    Entry(vec![
        ("enabled", Field::Flag(true)),
        ("type", text(kind)),
        ("name", text("tidelock")),
        (
            "description",
            text("Sandboxes, jobs and language servers that agents share"),
        ),
        // In seconds; anything longer is a job anyway.
        ("timeout", Field::Number(300)),
    ])
}

fn goose(program: &Program) -> Entry {
    let mut entry = extension("stdio");
    entry.0.push(("cmd", text(&program.command)));
    entry.0.push(("args", Field::List(program.arguments.clone())));
    entry.0.push(("envs", Field::Pairs(program.environment.clone())));
    entry.0.push(("env_keys", Field::List(Vec::new())));
    entry
}

fn authorization(token: &str) -> Field {
    Field::Pairs(vec![("Authorization".to_owned(), format!("Bearer {token}"))])
}

fn headed(name: &'static str, url: &str, token: &str) -> Entry {
    Entry(vec![(name, text(url)), ("headers", authorization(token))])
}

fn remote(kind: &str, url: &str, token: &str) -> Entry {
    let mut entry = Entry(vec![("type", text(kind))]);
    entry.0.extend(headed("url", url, token).0);
    entry
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_client_of_the_command_line_has_a_row() {
        for id in JoinClient::value_variants() {
            let client = of(*id).unwrap();
            let word = id.to_possible_value().unwrap();
            assert_eq!(word.get_name(), client.word);
            assert_eq!(client.check, format!("client_{}", client.word));
            assert!(!client.user.is_empty() && !client.table.is_empty(), "{client:?}");
        }
        assert_eq!(CLIENTS.len(), JoinClient::value_variants().len());
    }

    #[test]
    fn the_token_is_in_no_entry() {
        for client in CLIENTS {
            let Some(http) = client.http else { continue };
            let entry = http("http://127.0.0.1:7180/mcp").value().to_string();
            assert!(entry.contains(TOKEN_VARIABLE), "{}: {entry}", client.word);
        }
    }

    #[test]
    fn the_entry_of_every_client() {
        let program = Program {
            command: "/opt/tidelock".to_owned(),
            arguments: vec!["mcp".to_owned()],
            environment: vec![("TIDELOCK_HOME".to_owned(), "/t".to_owned())],
            passed: vec!["XDG_RUNTIME_DIR".to_owned()],
        };
        let mut said = String::new();
        for client in CLIENTS {
            let mut add = |way: &str, table: &[&str], entry: &Entry| {
                let piece = client.format.piece(table, "tidelock", entry);
                said.push_str(&format!("# {} {way}\n{piece}\n", client.word));
            };
            add("mcp", client.table, &(client.entry)(&program));
            if let Some(http) = client.http {
                add("http", client.table, &http("http://127.0.0.1:7180/mcp"));
            }
            if let Some(agents) = client.agents {
                add("acp", agents, &agent(&program));
            }
        }
        insta::assert_snapshot!(said);
    }
}
