//! Converts errors of questions about code to problems, and declares the codes that each operation can fail with.

use context::ContextError;
use protocol::ErrorCode;

use crate::context::QuestionError;
use crate::http::log_problem::ReadLog;
use crate::http::plans::problems::ReadSandbox;
use crate::http::problem::{Problem, sentence};
use crate::http::refusals::families;

families! {
    ChangeIndex = [WorkspaceUnusable, ShuttingDown] + ReadLog;
    Ask = [StrategyNotFound, FocusNotFound, ContextEmpty, ContextTooLarge, PathNotAllowed] + ChangeIndex + ReadSandbox;
}

impl From<QuestionError> for Problem {
    fn from(error: QuestionError) -> Self {
        match error {
            QuestionError::Plan(error) => error.into(),
            QuestionError::Context(error) => context_problem(error),
            QuestionError::Focus(_) => told(ErrorCode::PathNotAllowed, &error).in_field("focus"),
            QuestionError::NoSuchStrategy { ref field, .. } => {
                told(ErrorCode::StrategyNotFound, &error).in_field(field.clone())
            }
        }
    }
}

fn context_problem(error: ContextError) -> Problem {
    match &error {
        ContextError::Empty => told(ErrorCode::ContextEmpty, &error).in_field("query"),
        ContextError::TooLarge { what, .. } => {
            let problem = told(ErrorCode::ContextTooLarge, &error);
            match field_of(what) {
                Some(field) => problem.in_field(field),
                None => problem,
            }
        }
        ContextError::NoSuchStrategy { .. } => told(ErrorCode::StrategyNotFound, &error),
        ContextError::BadPath(_) => told(ErrorCode::PathNotAllowed, &error).in_field("focus"),
        ContextError::NoSuchFile(_) => told(ErrorCode::FocusNotFound, &error).in_field("focus"),
        ContextError::Unreadable { source, .. } => {
            let detail = format!("{error}: {source}");
            Problem::new(ErrorCode::WorkspaceUnusable, sentence(&detail))
        }
        ContextError::Tokenizer(_) => Problem::internal(error),
        ContextError::Cancelled => {
            Problem::new(ErrorCode::ShuttingDown, "The daemon answers no more questions.")
        }
    }
}

/// The request field that is too large.
fn field_of(what: &str) -> Option<&'static str> {
    let fields = [
        ("the query", "query"),
        ("the focus", "focus"),
        ("the budget", "budget_tokens"),
        ("the deadline", "deadline_ms"),
    ];
    let found = fields.iter().find(|(name, _)| *name == what);
    found.map(|(_, field)| *field)
}

fn told(code: ErrorCode, error: &dyn std::error::Error) -> Problem {
    Problem::new(code, sentence(&error.to_string()))
}
