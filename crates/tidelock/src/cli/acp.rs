//! The arguments of `tidelock acp`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Debug, Args)]
pub(crate) struct AcpArguments {
    /// Who answers in new sessions; `tidelock agent list` shows them
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,
    /// The model, for an agent that has a choice
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// What the rehearsal agent does in answer to each prompt, step by step, in YAML
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) script: Option<PathBuf>,
}
