//! Finds context: one function for HTTP, MCP and the page.

use std::path::PathBuf;
use std::time::Duration;

use context::TokenizerName;
use protocol::{ContextAnswer, ContextQuestion, ContextTokenizer};
use sessions::permissions::Readable;

use super::{FocusFrom, Question, TreeRef, wire};
use crate::app::App;
use crate::http::Problem;
use crate::http::ids::id_in;
use crate::jobs::wire::invalid;

/// Finds the code that is relevant to a question. *Cancel safety*: if dropped, the work for it is cancelled.
pub(crate) async fn ask(app: &App, request: ContextQuestion) -> Result<ContextAnswer, Problem> {
    let plan = request.plan.clone();
    let question = question_of(request)?;
    let answered = app.contexts.ask(question, &app.life.scope()).await?;
    Ok(wire::answer_to_wire(answered, plan))
}

fn question_of(request: ContextQuestion) -> Result<Question, Problem> {
    let tree = match (request.directory, request.plan) {
        (Some(_), Some(_)) => {
            return Err(invalid("directory", "cannot be given together with `plan`"));
        }
        (None, None) => return Err(invalid("directory", "is missing, and so is `plan`")),
        (Some(directory), None) => TreeRef::Directory(directory_of(&directory)?),
        (None, Some(plan)) => TreeRef::Plan(id_in("plan", &plan)?),
    };
    if request.deadline_ms == Some(0) {
        return Err(invalid("deadline_ms", "must be at least 1"));
    }
    let tokens = |given: u64| usize::try_from(given).unwrap_or(usize::MAX);
    Ok(Question {
        tree,
        query: request.query,
        focus: request.focus,
        focus_from: FocusFrom::Directory,
        budget_tokens: request.budget_tokens.map(tokens),
        patience: request.deadline_ms.map(Duration::from_millis),
        only: request.only,
        without: request.without,
        tokenizer: request.tokenizer.map(|tokenizer| match tokenizer {
            ContextTokenizer::O200k => TokenizerName::O200k,
            ContextTokenizer::Cl100k => TokenizerName::Cl100k,
        }),
        readable: Readable::everything(),
    })
}

pub(crate) fn directory_of(written: &str) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(written);
    match path.is_absolute() {
        true if written.contains('\0') => Err(invalid("directory", "has a NUL in it")),
        true => Ok(path),
        false => Err(invalid("directory", "is not an absolute path")),
    }
}
