//! The arguments of `tidelock join`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// A program that can be told of Tidelock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum JoinClient {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Zed
    Zed,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// goose
    Goose,
    /// Windsurf
    Windsurf,
}

/// Who a configuration applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum JoinScope {
    /// This project, for everyone who works on it
    Project,
    /// Every project, for you only
    #[default]
    User,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// The client to connect; without it, all clients are listed
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<JoinClient>,
    /// Write the entry to the client's configuration, and keep a backup next to it
    #[arg(long, requires = "client")]
    write: bool,
    /// With --write: replace a different entry with the same name
    #[arg(long, requires = "write")]
    replace: bool,
    /// Remove the entry from the client's configuration
    #[arg(long, requires = "client", conflicts_with_all = ["write", "http", "allow_apply"])]
    remove: bool,
    /// Who the configuration applies to
    #[arg(long, value_name = "SCOPE", default_value = "user", requires = "client")]
    pub(crate) scope: JoinScope,
    /// Connect over HTTP instead of a program that the client starts; the token comes from TIDELOCK_TOKEN
    #[arg(long, requires = "client", conflicts_with_all = ["acp", "allow_apply"])]
    http: bool,
    /// Connect as an agent that the editor uses over the Agent Client Protocol (zed)
    #[arg(long, requires = "client", conflicts_with = "allow_apply")]
    acp: bool,
    /// Let this client apply and undo plans without asking you
    #[arg(long, requires = "client")]
    allow_apply: bool,
    /// The name of the entry
    #[arg(long, value_name = "NAME", default_value = "tidelock", requires = "client",
        value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
}

/// What to do with the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinAction {
    /// Say what belongs where.
    Show,
    /// Put it there, unless something else of that name is there.
    Write,
    /// Put it there, whatever is there.
    Replace,
    /// Take it out.
    Remove,
}

/// How the client and the daemon speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinWay {
    /// The client starts `tidelock mcp`.
    Mcp,
    /// The same, and the client may apply plans without asking.
    McpAllowed,
    /// The client sends requests to the daemon.
    Http,
    /// The client starts `tidelock acp`.
    Acp,
}

impl JoinArguments {
    pub(crate) fn action(&self) -> JoinAction {
        match (self.remove, self.write, self.replace) {
            (true, ..) => JoinAction::Remove,
            (false, true, true) => JoinAction::Replace,
            (false, true, false) => JoinAction::Write,
            (false, false, _) => JoinAction::Show,
        }
    }

    pub(crate) fn way(&self) -> JoinWay {
        match (self.http, self.acp, self.allow_apply) {
            (true, ..) => JoinWay::Http,
            (false, true, _) => JoinWay::Acp,
            (false, false, true) => JoinWay::McpAllowed,
            (false, false, false) => JoinWay::Mcp,
        }
    }
}
