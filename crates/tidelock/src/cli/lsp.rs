//! The arguments of `tidelock lsp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::position::{SourcePosition, Span, parse_position, parse_span};
use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum LspCommand {
    /// List the language servers that have been used
    #[command(after_help = "\
Examples:
  tidelock lsp list
  tidelock lsp list --json")]
    List,
    /// Start the servers for a file, or a server by name, and wait until they respond
    #[command(after_help = "\
A query starts the servers it needs. Use this to start a server that you stopped, or to warm one up.

Examples:
  tidelock lsp start src/main.rs
  tidelock lsp start rust-analyzer --in .
  tidelock lsp start rust-analyzer       a server that was used before")]
    Start(StartArguments),
    /// Stop a server and wait until it has exited; it stays stopped until you start it
    #[command(after_help = "\
To name a server, use its id. Its name also works if only one server has that name, or if one of
them is for the current directory.

Examples:
  tidelock lsp stop rust-analyzer
  tidelock lsp stop --all")]
    Stop(StopArguments),
    /// Restart a server in a new process, and wait until it responds
    #[command(after_help = "\
Queries that arrive in the meantime wait for the new process. With --generation, the restart is
refused (exit code 4) if the server was restarted since you looked.

Examples:
  tidelock lsp restart rust-analyzer
  tidelock lsp restart rust-analyzer --generation 3")]
    Restart(RestartArguments),
    /// Check whether a server is alive and responding
    #[command(after_help = "\
Examples:
  tidelock lsp health pyright
  tidelock lsp health pyright --json")]
    Health(ServerArguments),
    /// Show the recent messages and state changes of a server
    #[command(after_help = "\
Examples:
  tidelock lsp log pyright")]
    Log(ServerArguments),
    /// Show which servers are configured for a directory, and how to install missing ones
    #[command(after_help = "\
Examples:
  tidelock lsp config
  tidelock lsp config ~/project --json")]
    Config(ConfigArguments),
    /// Trust a repository's language server configuration
    #[command(after_help = "\
A `.lsp.json` names programs to run, so it takes effect only after you have reviewed and trusted
it. The same goes for servers inside the workspace, such as those in node_modules. If you pass the
hash that `tidelock lsp config` shows, a file that has changed since is not trusted.

Examples:
  tidelock lsp trust .
  tidelock lsp trust .lsp.json 3f7a90c2")]
    Trust(TrustArguments),
    /// Show the diagnostics for a file, as it is on disk now
    #[command(after_help = "\
The exit code is 0 whatever the servers report, errors included.

Examples:
  tidelock lsp diagnostics src/main.rs
  tidelock lsp diagnostics app.py --server ruff --json")]
    Diagnostics(FileArguments),
    /// Show types and documentation for a position
    #[command(after_help = "\
Examples:
  tidelock lsp hover src/main.rs:12:8")]
    Hover(PositionArguments),
    /// List the completions at a position
    #[command(after_help = "\
Examples:
  tidelock lsp completions src/main.rs:12:8")]
    Completions(PositionArguments),
    /// Find where a symbol is defined
    #[command(after_help = "\
Examples:
  tidelock lsp definition src/main.rs:12:8")]
    Definition(PositionArguments),
    /// Find where a symbol is declared
    #[command(after_help = "\
Examples:
  tidelock lsp declaration src/main.c:12:8")]
    Declaration(PositionArguments),
    /// Find where the type of a symbol is defined
    #[command(after_help = "\
Examples:
  tidelock lsp type-definition src/main.rs:12:8")]
    TypeDefinition(PositionArguments),
    /// Find the implementations of a symbol
    #[command(after_help = "\
Examples:
  tidelock lsp implementation src/lib.rs:12:8")]
    Implementation(PositionArguments),
    /// Find the references to a symbol
    #[command(after_help = "\
A server reports `no references` only after it has indexed the whole workspace.

Examples:
  tidelock lsp references src/main.rs:12:8
  tidelock lsp references src/main.rs:12:8 --without-declaration --wait-ready")]
    References(ReferencesArguments),
    /// Show how renaming a symbol would change the files, without changing them
    #[command(after_help = "\
The edit is printed as a diff. --json also includes the edit itself.

Examples:
  tidelock lsp rename src/main.rs:12:8 new_name")]
    Rename(RenameArguments),
    /// List the code actions for a position or range, without running them
    #[command(after_help = "\
The end position of a range is exclusive.

Examples:
  tidelock lsp code-actions src/main.rs:12:8
  tidelock lsp code-actions src/main.rs:12:1-14:1 --kind refactor")]
    CodeActions(CodeActionsArguments),
    /// Show how formatting would change a file, without changing it
    #[command(after_help = "\
Examples:
  tidelock lsp format src/main.rs")]
    Format(FileArguments),
    /// Show the signature of the call at a position
    #[command(after_help = "\
Examples:
  tidelock lsp signature src/main.rs:12:8")]
    Signature(PositionArguments),
    /// List the symbols in a file
    #[command(after_help = "\
Examples:
  tidelock lsp symbols src/main.rs")]
    Symbols(FileArguments),
    /// Find symbols in a workspace
    #[command(after_help = "\
Examples:
  tidelock lsp workspace-symbols Session
  tidelock lsp workspace-symbols Session --in ~/project --wait-ready")]
    WorkspaceSymbols(WorkspaceSymbolsArguments),
    /// Find the callers of a function, or the functions it calls
    #[command(after_help = "\
Examples:
  tidelock lsp calls src/main.rs:12:8
  tidelock lsp calls src/main.rs:12:8 --outgoing")]
    Calls(CallsArguments),
    /// Send a raw protocol request to a server, for anything that has no command
    #[command(after_help = "\
The parameters and the result are as in the protocol: lines and columns from 0, files as URIs.

Examples:
  tidelock lsp request rust-analyzer rust-analyzer/analyzerStatus '{}'")]
    Request(RequestArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The id or name of the server
    #[arg(value_name = "SERVER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: String,
}

#[derive(Debug, Args)]
pub(crate) struct StartArguments {
    /// A file or directory, or the name of a server; with --in, always a name
    #[arg(value_name = "FILE|SERVER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: String,
    /// The directory for the named server to work on
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Start only this server
    #[arg(long, value_name = "NAME", conflicts_with = "directory")]
    pub(crate) server: Option<String>,
    /// The workspace; defaults to the repository of the file
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The id or name of the server
    #[arg(value_name = "SERVER", required_unless_present = "all", conflicts_with = "all",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Stop every server
    #[arg(long)]
    all: bool,
    /// Stop the server only if it is still at this generation
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// Restart the server only if it is still at this generation
    #[arg(long, value_name = "NUMBER")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// The directory; defaults to the current one
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The workspace, or its `.lsp.json`
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The hash of the version you reviewed; any other version is refused. Defaults to the current version
    #[arg(value_name = "HASH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) hash: Option<String>,
}

/// What all queries have in common.
#[derive(Debug, Args)]
pub(crate) struct QueryOptions {
    /// Wait until the server has indexed the whole workspace, instead of failing while it indexes
    #[arg(long, conflicts_with = "no_wait")]
    wait_ready: bool,
    /// Fail if the server is still starting, instead of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// The time limit for the whole query (500ms, 30s, 5m, 1h); defaults to 30s, and more while a server starts
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Query only this server
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// The workspace, which paths in the answer are relative to; defaults to the repository of the file
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

/// What to do about a server that is not ready yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Wait until it answers.
    UntilStarted,
    /// And until it has read the workspace.
    UntilReady,
    /// Fail at once.
    Not,
}

impl QueryOptions {
    pub(crate) fn waiting(&self) -> Waiting {
        match (self.wait_ready, self.no_wait) {
            (true, _) => Waiting::UntilReady,
            (false, true) => Waiting::Not,
            (false, false) => Waiting::UntilStarted,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FileArguments {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PositionArguments {
    /// The position; lines and columns count from 1, columns in characters
    #[arg(value_name = "FILE:LINE:COL", value_parser = parse_position)]
    pub(crate) place: SourcePosition,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReferencesArguments {
    #[command(flatten)]
    pub(crate) at: PositionArguments,
    /// Leave out the declaration
    #[arg(long)]
    without_declaration: bool,
}

/// Whether the declaration counts as a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declaration {
    Included,
    LeftOut,
}

impl ReferencesArguments {
    pub(crate) fn declaration(&self) -> Declaration {
        if self.without_declaration {
            Declaration::LeftOut
        } else {
            Declaration::Included
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RenameArguments {
    #[command(flatten)]
    pub(crate) at: PositionArguments,
    /// The new name
    #[arg(value_name = "NEW_NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) new_name: String,
}

#[derive(Debug, Args)]
pub(crate) struct CodeActionsArguments {
    /// The position or range; lines and columns count from 1, columns in characters
    #[arg(value_name = "FILE:LINE:COL[-LINE:COL]", value_parser = parse_span)]
    pub(crate) span: Span,
    /// Only list kinds with this prefix, such as quickfix (may be repeated)
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct WorkspaceSymbolsArguments {
    /// A part of the name; by default, all symbols that the server returns
    #[arg(value_name = "QUERY", default_value = "")]
    pub(crate) query: String,
    /// A directory in the workspace; defaults to the current one
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallsArguments {
    #[command(flatten)]
    pub(crate) at: PositionArguments,
    /// Find the functions it calls, instead of its callers
    #[arg(long)]
    outgoing: bool,
}

impl CallsArguments {
    pub(crate) fn direction(&self) -> protocol::CallDirection {
        if self.outgoing {
            protocol::CallDirection::Outgoing
        } else {
            protocol::CallDirection::Incoming
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// The method, such as textDocument/foldingRange
    #[arg(value_name = "METHOD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) method: String,
    /// The parameters, as JSON
    #[arg(value_name = "PARAMS_JSON", value_parser = parse_json)]
    pub(crate) params: Option<serde_json::Value>,
    /// The time limit (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

fn parse_json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
}
