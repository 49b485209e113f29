//! The arguments of `tidelock completions` and `tidelock man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell to generate completions for
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
    /// Write one page per command to this directory, instead of printing the main page
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
