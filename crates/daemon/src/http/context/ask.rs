//! A question about code.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use context::TokenizerName;
use protocol::{ContextAnswer, ContextQuestion, ContextTokenizer};
use sessions::permissions::Readable;

use super::problems;
use crate::app::App;
use crate::context::{FocusFrom, Question, TreeRef, wire};
use crate::http::body;
use crate::http::ids::id_in;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;

/// Finds the pieces of a code base that belong to a question.
///
/// Several strategies look at once. What becomes of each is in the answer: one that fails, takes too long or is not asked
/// because it has failed too often costs neither the answer nor the others. The first question about a workspace makes its
/// index begin, and does not wait for it. A caller that goes away cancels its question.
#[utoipa::path(
    post, path = "/v1/context", operation_id = "ask_context", tag = "context", request_body = ContextQuestion,
    responses(
        (status = 200, description = "What was found, which may be nothing.", body = ContextAnswer),
        problems::Ask,
    ),
)]
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<ContextQuestion>,
) -> Result<Json<ContextAnswer>, Problem> {
    let plan = request.plan.clone();
    let question = question_of(request)?;
    // Whoever goes away drops this, and what runs for it is cancelled.
    let answered = app.contexts.ask(question, &app.life.scope()).await?;
    Ok(Json(wire::answer_to_wire(answered, plan)))
}

/// Reads a question.
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

/// A directory that was written down.
pub(super) fn directory_of(written: &str) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(written);
    match path.is_absolute() {
        true if written.contains('\0') => Err(invalid("directory", "has a NUL in it")),
        true => Ok(path),
        false => Err(invalid("directory", "is not an absolute path")),
    }
}
