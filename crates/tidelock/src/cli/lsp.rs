//! The arguments of `tidelock lsp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::place::{Place, Span, parse_place, parse_span};
use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum LspCommand {
    /// List the language servers that were used
    #[command(after_help = "\
Examples:
  tidelock lsp list
  tidelock lsp list --json")]
    List,
    /// Start the servers for a file, or a server by name, and wait until they answer
    #[command(after_help = "\
A query starts what it needs by itself. This is for a server that was stopped by hand, or to have
it warm.

Examples:
  tidelock lsp start src/main.rs
  tidelock lsp start rust-analyzer --in .
  tidelock lsp start rust-analyzer       one that was used before")]
    Start(StartArguments),
    /// Stop a server and wait until it has gone; it stays stopped until it is started by hand
    #[command(after_help = "\
A server is named by its id, or by its name if there is one of that name or one of them is for
this directory.

Examples:
  tidelock lsp stop rust-analyzer
  tidelock lsp stop --all")]
    Stop(StopArguments),
    /// Put a new process in the place of a server's, and wait until it answers
    #[command(after_help = "\
Queries that come in between wait for the new process. With --generation the restart is refused
(exit code 4) when somebody else was faster.

Examples:
  tidelock lsp restart rust-analyzer
  tidelock lsp restart rust-analyzer --generation 3")]
    Restart(RestartArguments),
    /// Ask whether a server lives and answers
    #[command(after_help = "\
Examples:
  tidelock lsp health pyright
  tidelock lsp health pyright --json")]
    Health(ServerArguments),
    /// Show what a server said lately, and what happened to it
    #[command(after_help = "\
Examples:
  tidelock lsp log pyright")]
    Log(ServerArguments),
    /// Show which servers are configured for a directory, and how to install those that are missing
    #[command(after_help = "\
Examples:
  tidelock lsp config
  tidelock lsp config ~/project --json")]
    Config(ConfigArguments),
    /// Let a repository's configuration of servers take effect, as it was shown
    #[command(after_help = "\
A `.lsp.json` names programs that would be run, so it counts only after you have looked at it.
The same goes for servers that lie in the workspace, such as those in node_modules. With the hash that
`tidelock lsp config` shows, nothing is trusted if the file has changed since.

Examples:
  tidelock lsp trust .
  tidelock lsp trust .lsp.json 3f7a90c2")]
    Trust(TrustArguments),
    /// Show what the servers have to say about a file, as it is on disk now
    #[command(after_help = "\
The exit code is 0 whatever they find: what they say is the answer.

Examples:
  tidelock lsp diagnostics src/main.rs
  tidelock lsp diagnostics app.py --server ruff --json")]
    Diagnostics(FileArguments),
    /// Show what is known about a place: types, documentation
    #[command(after_help = "\
Examples:
  tidelock lsp hover src/main.rs:12:8")]
    Hover(PlaceArguments),
    /// List ways to go on at a place
    #[command(after_help = "\
Examples:
  tidelock lsp completions src/main.rs:12:8")]
    Completions(PlaceArguments),
    /// Find where something is defined
    #[command(after_help = "\
Examples:
  tidelock lsp definition src/main.rs:12:8")]
    Definition(PlaceArguments),
    /// Find where something is declared
    #[command(after_help = "\
Examples:
  tidelock lsp declaration src/main.c:12:8")]
    Declaration(PlaceArguments),
    /// Find where the type of something is defined
    #[command(after_help = "\
Examples:
  tidelock lsp type-definition src/main.rs:12:8")]
    TypeDefinition(PlaceArguments),
    /// Find what implements something
    #[command(after_help = "\
Examples:
  tidelock lsp implementation src/lib.rs:12:8")]
    Implementation(PlaceArguments),
    /// Find where something is used
    #[command(after_help = "\
`no references` is said only by a server that has read the whole workspace.

Examples:
  tidelock lsp references src/main.rs:12:8
  tidelock lsp references src/main.rs:12:8 --without-declaration --wait-ready")]
    References(ReferencesArguments),
    /// Show how the files would change if something got another name; nothing is changed
    #[command(after_help = "\
The edit is printed as a diff, and with --json as an edit too.

Examples:
  tidelock lsp rename src/main.rs:12:8 new_name")]
    Rename(RenameArguments),
    /// List what the servers offer to do about a place; nothing is done
    #[command(after_help = "\
A range ends before its last position.

Examples:
  tidelock lsp code-actions src/main.rs:12:8
  tidelock lsp code-actions src/main.rs:12:1-14:1 --kind refactor")]
    CodeActions(CodeActionsArguments),
    /// Show how a file would change if it were formatted; nothing is changed
    #[command(after_help = "\
Examples:
  tidelock lsp format src/main.rs")]
    Format(FileArguments),
    /// Show how to call what is called at a place
    #[command(after_help = "\
Examples:
  tidelock lsp signature src/main.rs:12:8")]
    Signature(PlaceArguments),
    /// List what has a name in a file
    #[command(after_help = "\
Examples:
  tidelock lsp symbols src/main.rs")]
    Symbols(FileArguments),
    /// Find what has a name in a workspace
    #[command(after_help = "\
Examples:
  tidelock lsp workspace-symbols Session
  tidelock lsp workspace-symbols Session --in ~/project --wait-ready")]
    WorkspaceSymbols(WorkspaceSymbolsArguments),
    /// Find who calls what stands at a place, or whom it calls
    #[command(after_help = "\
Examples:
  tidelock lsp calls src/main.rs:12:8
  tidelock lsp calls src/main.rs:12:8 --outgoing")]
    Calls(CallsArguments),
    /// Send a request of the protocol itself to a server, for what has no command
    #[command(after_help = "\
Parameters and answer are as the protocol has them: lines and columns from 0, files as URIs.

Examples:
  tidelock lsp request rust-analyzer rust-analyzer/analyzerStatus '{}'")]
    Request(RequestArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The id of the server, or its name
    #[arg(value_name = "SERVER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: String,
}

#[derive(Debug, Args)]
pub(crate) struct StartArguments {
    /// A file or a directory; with --in, the name of a server
    #[arg(value_name = "FILE|SERVER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) what: String,
    /// The directory that a server, named before, shall work on
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Only this server
    #[arg(long, value_name = "NAME", conflicts_with = "directory")]
    pub(crate) server: Option<String>,
    /// The workspace; left out, it is the repository that the file is in
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The id of the server, or its name
    #[arg(value_name = "SERVER", required_unless_present = "all", conflicts_with = "all",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Stop every server
    #[arg(long)]
    all: bool,
    /// Stop it only if this is still its generation
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// Restart it only if this is still its generation
    #[arg(long, value_name = "NUMBER")]
    pub(crate) generation: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// The directory; left out, it is the current one
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The workspace, or its `.lsp.json`
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The hash of what was looked at: anything else is refused. Left out, what is there now is trusted
    #[arg(value_name = "HASH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) hash: Option<String>,
}

/// What all queries have in common.
#[derive(Debug, Args)]
pub(crate) struct QueryOptions {
    /// Wait until the server has read the whole workspace, in place of failing while it reads
    #[arg(long, conflicts_with = "no_wait")]
    wait_ready: bool,
    /// Fail while the server starts, in place of waiting for it
    #[arg(long)]
    no_wait: bool,
    /// How long all of it may take (500ms, 30s, 5m, 1h); left out, 30 seconds and more while a server starts
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Ask only this server
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// The workspace, which paths in the answer are relative to; left out, it is the repository of the file
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
pub(crate) struct PlaceArguments {
    /// The place; line and column count from 1, columns in characters
    #[arg(value_name = "FILE:LINE:COL", value_parser = parse_place)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReferencesArguments {
    #[command(flatten)]
    pub(crate) at: PlaceArguments,
    /// Leave the declaration out
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
    pub(crate) at: PlaceArguments,
    /// The new name
    #[arg(value_name = "NEW_NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) new_name: String,
}

#[derive(Debug, Args)]
pub(crate) struct CodeActionsArguments {
    /// The place, or a range; line and column count from 1, columns in characters
    #[arg(value_name = "FILE:LINE:COL[-LINE:COL]", value_parser = parse_span)]
    pub(crate) span: Span,
    /// Only kinds that begin so, such as quickfix (may be repeated)
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct WorkspaceSymbolsArguments {
    /// A part of the name; left out, all that the server tells
    #[arg(value_name = "QUERY", default_value = "")]
    pub(crate) query: String,
    /// A directory of the workspace; left out, it is the current one
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: QueryOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallsArguments {
    #[command(flatten)]
    pub(crate) at: PlaceArguments,
    /// Whom it calls, in place of who calls it
    #[arg(long)]
    outgoing: bool,
}

impl CallsArguments {
    pub(crate) fn direction(&self) -> api::CallDirection {
        if self.outgoing {
            api::CallDirection::Outgoing
        } else {
            api::CallDirection::Incoming
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
    /// Its parameters
    #[arg(value_name = "PARAMS_JSON", value_parser = parse_json)]
    pub(crate) params: Option<serde_json::Value>,
    /// How long it may take (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

fn parse_json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
}
