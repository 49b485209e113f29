//! The arguments of a prompt, and of `tidelock run`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use protocol::{FinishPlan, FinishThen};

use super::Stay;

/// A prompt, and who is asked.
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// The agent to use; `tidelock agent list` shows the available ones
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,
    /// The model, for agents that support several
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// A YAML script of steps for the rehearsal agent
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) script: Option<PathBuf>,
    /// Attach a file to the prompt (may be repeated)
    #[arg(long = "attach", value_name = "FILE")]
    pub(crate) attachments: Vec<PathBuf>,
    /// Let the daemon apply the changes if the turn is done, the checks pass and nothing conflicts
    #[arg(long, conflicts_with = "detach")]
    apply: bool,
    /// Don't wait: print what was started and exit; the turn keeps running
    #[arg(long)]
    detach: bool,
    /// The prompt; `-` reads standard input to the end first
    #[arg(value_name = "PROMPT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) prompt: String,
}

impl PromptArguments {
    pub(crate) fn stay(&self) -> Stay {
        if self.detach { Stay::Submitted } else { Stay::Ended }
    }

    /// What the daemon does with the changes of the turn.
    pub(crate) fn finish(&self) -> Option<FinishPlan> {
        self.apply.then_some(FinishPlan {
            then: FinishThen::Apply,
            commit: None,
            discard_unchanged: false,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct TalkArguments {
    /// Continue this session instead of opening a new one
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Work in this plan instead of a new one
    #[arg(long, value_name = "PLAN", conflicts_with = "session", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: Option<String>,
    /// The title of the session; defaults to the beginning of the prompt
    #[arg(long, value_name = "TEXT", conflicts_with = "session", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
}
