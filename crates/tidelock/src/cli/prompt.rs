//! The arguments of a prompt, and of `tidelock run`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::Stay;

/// A prompt, and who is asked.
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// Ask this agent; `tidelock agent list` shows them
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,
    /// The model, for an agent that has a choice
    #[arg(long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// What the rehearsal agent does, step by step, in YAML
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) script: Option<PathBuf>,
    /// Send a file along (may be repeated)
    #[arg(long = "attach", value_name = "FILE")]
    pub(crate) attachments: Vec<PathBuf>,
    /// Apply the changes at once if the turn is done, the checks pass and nothing conflicts
    #[arg(long, conflicts_with = "detach")]
    pub(crate) apply: bool,
    /// Do not stay: say what was begun, and leave it to itself
    #[arg(long)]
    detach: bool,
    /// What is asked; `-` for standard input, which is read to its end first
    #[arg(value_name = "PROMPT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) prompt: String,
}

impl PromptArguments {
    pub(crate) fn stay(&self) -> Stay {
        if self.detach { Stay::Submitted } else { Stay::Ended }
    }

    pub(crate) fn if_done(&self) -> IfDone {
        if self.apply { IfDone::Apply } else { IfDone::Show }
    }
}

/// What becomes of the changes of a turn that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfDone {
    /// They are shown, for somebody to decide.
    Show,
    /// They are applied.
    Apply,
}

#[derive(Debug, Args)]
pub(crate) struct TalkArguments {
    /// Go on with this session, in place of a new one
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Work in this plan, in place of a new one
    #[arg(long, value_name = "PLAN", conflicts_with = "session", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: Option<String>,
    /// What the session is about; otherwise the beginning of the prompt
    #[arg(long, value_name = "TEXT", conflicts_with = "session", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
}
