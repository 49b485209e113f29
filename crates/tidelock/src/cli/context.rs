//! The arguments of `tidelock context` and `tidelock index`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use crate::units;

#[derive(Debug, Args)]
pub(crate) struct ContextArguments {
    /// A file that the question is about (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) focus: Vec<PathBuf>,
    /// The maximum number of tokens in the answer; defaults to the configured value, usually 8000
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// The maximum time to spend (500ms, 2s); defaults to the configured value, usually 3s
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) deadline: Option<Duration>,
    /// Search the sandbox of this plan instead of the workspace
    #[arg(long, value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: Option<String>,
    /// Search the workspace of this directory instead of the current one
    #[arg(long = "in", value_name = "DIR", conflicts_with = "plan")]
    pub(crate) directory: Option<PathBuf>,
    /// Use only this strategy (may be repeated)
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) only: Vec<String>,
    /// Skip this strategy (may be repeated)
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) without: Vec<String>,
    /// Show why each piece was selected and what each strategy did, instead of the text
    #[arg(long)]
    explain: bool,
    /// The question: words, names or a sentence; `-` reads standard input to the end first
    #[arg(value_name = "QUERY", required_unless_present = "focus")]
    pub(crate) query: Option<String>,
}

/// What is told of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Its text, as a model gets it.
    Text,
    /// How it came about.
    Explanation,
}

impl ContextArguments {
    pub(crate) fn telling(&self) -> Telling {
        if self.explain {
            Telling::Explanation
        } else {
            Telling::Text
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// List the indexes in use
    #[command(after_help = "\
Examples:
  tidelock index list
  tidelock index list --json")]
    List,
    /// Discard the index of a workspace and rebuild it in the background
    #[command(after_help = "\
Questions are still answered in the meantime, without an index.

Examples:
  tidelock index rebuild
  tidelock index rebuild ~/project")]
    Rebuild(IndexArguments),
    /// Remove the index of a workspace; the next question rebuilds it
    #[command(after_help = "\
The workspace itself doesn't change. If there is no index, the command succeeds anyway.

Examples:
  tidelock index rm
  tidelock index rm ~/old-project")]
    Rm(IndexArguments),
}

#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// A directory in the workspace; defaults to the current one
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
