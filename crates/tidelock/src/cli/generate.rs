//! The arguments of `tidelock completions` and `tidelock man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: ShellName,
}

/// A shell that can complete our arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ShellName {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write one page for each command into this directory, in place of the first one to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
