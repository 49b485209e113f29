//! The arguments of a command that runs in a sandbox, and of `tidelock exec`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::job::positive_duration;
use super::job_values::{Variable, parse_variable};
use super::plan::{CommitArguments, OpenArguments};
use super::{Inherited, Terminal};

/// A command that runs in a sandbox, and how.
#[derive(Debug, Args)]
pub(crate) struct SandboxedArguments {
    /// Also allow writes below this directory, outside the sandbox (may be repeated)
    #[arg(long = "write", value_name = "PATH")]
    pub(crate) write_below: Vec<PathBuf>,
    /// Set an environment variable, or with --clean-env, keep one that is set here (may be repeated)
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    pub(crate) variables: Vec<Variable>,
    /// Clear the environment except for PATH, HOME, USER, LOGNAME, SHELL, LANG, TERM and TMPDIR
    #[arg(long)]
    clean_env: bool,
    /// The command's input: a file, or `-` for standard input, which is read to the end first
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Give the command no input. By default, it reads standard input if that is not a terminal
    #[arg(long, conflicts_with = "stdin")]
    no_input: bool,
    /// The time limit for the command (500ms, 30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Don't give the command a terminal to write to, so that most commands use no color
    #[arg(long)]
    no_color: bool,
    /// Don't wait: print what was started, and let the daemon handle the rest
    #[arg(long)]
    detach: bool,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
    pub(crate) command: Vec<String>,
}

impl SandboxedArguments {
    pub(crate) fn inherited(&self) -> Inherited {
        if self.clean_env {
            Inherited::Little
        } else {
            Inherited::Everything
        }
    }

    pub(crate) fn terminal(&self) -> Terminal {
        if self.no_color {
            Terminal::Never
        } else {
            Terminal::AsHere
        }
    }

    /// Whether standard input is sent to the command.
    pub(crate) fn reads(&self) -> super::Reads {
        super::Reads::of(!self.detach && !self.no_input && self.stdin.is_none())
    }

    pub(crate) fn stay(&self) -> super::Stay {
        if self.detach {
            super::Stay::Submitted
        } else {
            super::Stay::Ended
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    /// Run the command in this plan instead of a new one
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["title", "checks", "strategy", "parent"], value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: Option<String>,
    /// Apply the changes right away if the command succeeds, the checks pass and nothing conflicts
    #[arg(long, conflicts_with = "no_seal")]
    apply: bool,
    #[command(flatten)]
    pub(crate) commit: CommitArguments,
    /// Leave the plan open for more work when the command ends
    #[arg(long, conflicts_with = "commit")]
    no_seal: bool,
    #[command(flatten)]
    pub(crate) command: SandboxedArguments,
}

/// What is done with a plan when the command in it has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// It stays open.
    Keep,
    /// It is sealed, for somebody to look at.
    Seal,
    /// It is applied.
    Apply,
}

impl ExecArguments {
    /// What is done when the command has succeeded. Whoever wants a commit wants it applied.
    pub(crate) fn afterwards(&self) -> Afterwards {
        match (self.apply || self.commit.wanted().is_some(), self.no_seal) {
            (true, _) => Afterwards::Apply,
            (false, true) => Afterwards::Keep,
            (false, false) => Afterwards::Seal,
        }
    }
}
