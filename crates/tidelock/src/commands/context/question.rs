//! Turns arguments into a question.

use std::path::Path;

use protocol::ContextQuestion;

use crate::cli::ContextArguments;
use crate::client::{Client, whole_ms};
use crate::commands::ids::PLAN;
use crate::commands::session::prompt::{FROM_STDIN, text_of};
use crate::error::{Exit, Failure};
use crate::paths;

/// Validates the arguments before asking a daemon.
pub(super) fn new(arguments: &ContextArguments, client: &Client) -> Result<ContextQuestion, Failure> {
    let query = match arguments.query.as_deref() {
        Some(FROM_STDIN) => text_of(Path::new(FROM_STDIN))?,
        Some(query) => query.to_owned(),
        None => String::new(),
    };
    if query.trim().is_empty() && arguments.focus.is_empty() {
        return Err(Failure::new(Exit::Usage, "usage", "the query is empty").advise(
            "write what to look for, for example: `tidelock context 'retry policy'`, or choose a file with --focus",
        ));
    }
    let focus = arguments.focus.iter();
    let focus = match &arguments.plan {
        None => focus.map(|path| paths::file(path)).collect::<Result<_, _>>()?,
        Some(_) => focus.map(|path| in_sandbox(path)).collect::<Result<_, _>>()?,
    };
    let directory = match (&arguments.plan, &arguments.directory) {
        (Some(_), _) => None,
        (None, Some(directory)) => Some(paths::directory(directory)?),
        (None, None) => Some(paths::directory(Path::new("."))?),
    };
    let plan = arguments
        .plan
        .as_ref()
        .map(|plan| PLAN.find(plan, client))
        .transpose()?;
    Ok(ContextQuestion {
        query,
        directory,
        plan,
        focus,
        budget_tokens: arguments.budget,
        deadline_ms: arguments.deadline.map(whole_ms),
        only: arguments.only.clone(),
        without: arguments.without.clone(),
        tokenizer: None,
    })
}

/// A file in the sandbox of a plan. If it also exists in the workspace, it is resolved from the current directory,
/// like all files; otherwise only the daemon knows whether it exists, and resolves it from the root of the workspace.
fn in_sandbox(path: &Path) -> Result<String, Failure> {
    paths::file(path).or_else(|failure| path.to_str().map(str::to_owned).ok_or(failure))
}
