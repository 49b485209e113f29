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
    /// How many tokens the answer may have; otherwise as configured, usually 8000
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// How long it may take (500ms, 2s); otherwise as configured, usually 3s
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) deadline: Option<Duration>,
    /// Read the sandbox of this plan, in place of the workspace
    #[arg(long, value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: Option<String>,
    /// Look in the workspace of this directory, in place of this one
    #[arg(long = "in", value_name = "DIR", conflicts_with = "plan")]
    pub(crate) directory: Option<PathBuf>,
    /// Ask only this strategy (may be repeated)
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) only: Vec<String>,
    /// Do not ask this strategy (may be repeated)
    #[arg(long, value_name = "STRATEGY", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub(crate) without: Vec<String>,
    /// Say why each piece is there and what each strategy did, in place of the text
    #[arg(long)]
    explain: bool,
    /// The question: words, names, a sentence; `-` for standard input, which is read to its end first
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
    /// List the indexes that are in use
    #[command(after_help = "\
Examples:
  tidelock index list
  tidelock index list --json")]
    List,
    /// Throw the index of a workspace away and make it anew, in the background
    #[command(after_help = "\
Questions are answered meanwhile, without an index.

Examples:
  tidelock index rebuild
  tidelock index rebuild ~/project")]
    Rebuild(IndexArguments),
    /// Remove the index of a workspace; the next question makes it anew
    #[command(after_help = "\
Nothing is changed in the workspace. That there was none is fine.

Examples:
  tidelock index rm
  tidelock index rm ~/old-project")]
    Rm(IndexArguments),
}

#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// A directory of the workspace, in place of this one
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
