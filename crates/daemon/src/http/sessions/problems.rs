//! What goes wrong with sessions, as problems.

use eventlog::{BlobError, LogError};
use protocol::{ErrorCode, SessionId, TurnId};
use sessions::SessionError;

use crate::app::App;
use crate::http::log_problem::{not_committed, read_failed, unreadable};
use crate::http::plan_problem;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;
use crate::sessions::wire;

/// Something was not done to a session. What the caller has to look at to decide again goes with it.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn session_problem_of(app: &App, error: SessionError) -> Problem {
    if let SessionError::Plan { source, .. } = error {
        return plan_problem(&app.plans, *source).await.in_field("plan");
    }
    let about = subject(&error);
    let problem = session_problem(error);
    match about {
        Subject::Nothing => problem,
        Subject::Session(id) => match app.conversations.get(id).await {
            Ok(session) => {
                problem.with_current(wire::shown(&app.conversations, &app.durable.machines, &session))
            }
            Err(_) => problem,
        },
        Subject::Turn(id) => match app.conversations.turn(id).await {
            Ok(turn) => problem.with_current(wire::turn_to_wire(&turn)),
            Err(_) => problem,
        },
    }
}

/// What the caller has to look at.
enum Subject {
    Nothing,
    Session(SessionId),
    Turn(TurnId),
}

fn subject(error: &SessionError) -> Subject {
    match error {
        SessionError::TurnActive { session, .. }
        | SessionError::TurnNotActive { session, .. }
        | SessionError::Archived(session)
        | SessionError::InUse(session)
        | SessionError::HasForks { session, .. }
        | SessionError::QueueFull { session, .. } => Subject::Session(*session),
        SessionError::TurnNotQueued { turn, .. } | SessionError::KeyReused { turn } => Subject::Turn(*turn),
        _ => Subject::Nothing,
    }
}

/// The same, for those who only look.
pub(super) fn session_problem(error: SessionError) -> Problem {
    let mut detail = sentence(&error.to_string());
    let code = match error {
        SessionError::NotFound(_) => ErrorCode::SessionNotFound,
        SessionError::TurnNotFound(_) => ErrorCode::TurnNotFound,
        SessionError::AgentNotFound { known, .. } => {
            detail.push_str(&format!(" There are: {}.", known.join(", ")));
            ErrorCode::AgentNotFound
        }
        SessionError::AgentNotReady { .. } => ErrorCode::AgentNotReady,
        SessionError::TurnActive { turn, .. } => {
            detail.push_str(&format!(" It is {turn}."));
            ErrorCode::TurnActive
        }
        SessionError::TurnNotActive { state, .. } => {
            detail.push_str(&format!(" It is {}.", state.name()));
            ErrorCode::TurnNotActive
        }
        SessionError::TurnNotQueued { .. } => ErrorCode::TurnNotQueued,
        SessionError::NotStale { .. } => ErrorCode::TurnNotStale,
        SessionError::Stale { current } => {
            let (id, version) = (current.id, current.version);
            let detail = format!("The session {id} has moved on; it is at version {version} now.");
            return Problem::new(ErrorCode::StaleGeneration, detail).with_current(wire::to_wire(&current));
        }
        SessionError::Archived(_) => ErrorCode::SessionArchived,
        SessionError::InUse(_) => ErrorCode::SessionInUse,
        SessionError::HasForks { .. } => ErrorCode::SessionHasForks,
        SessionError::QueueFull { .. } => ErrorCode::QueueFull,
        SessionError::PermissionNotFound { .. } => ErrorCode::PermissionNotFound,
        SessionError::Directory { why } => return invalid("directory", &why),
        SessionError::Invalid { .. } => ErrorCode::InvalidPrompt,
        SessionError::KeyReused { .. } => ErrorCode::IdempotencyKeyReused,
        SessionError::Closed
        | SessionError::Log(LogError::Closed)
        | SessionError::Blob(BlobError::Log(LogError::Closed)) => {
            return Problem::new(ErrorCode::ShuttingDown, "The daemon takes no more prompts.");
        }
        SessionError::Log(error) | SessionError::Blob(BlobError::Log(error)) => return read_failed(error),
        SessionError::Commit(error) => return not_committed(error),
        // What is kept was written by a daemon that knew something else, or is damaged.
        SessionError::Unreadable { .. } => return unreadable(&error),
        error @ (SessionError::Plan { .. } | SessionError::Blob(_)) => {
            return Problem::internal(error);
        }
    };
    Problem::new(code, detail)
}

/// An error as a sentence. An id at its beginning stays as it is.
fn sentence(error: &str) -> String {
    let text = error.trim_end_matches('.');
    let first_word = text.split(' ').next().unwrap_or_default();
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if !first_word.contains('_') => {
            let capital = first.to_uppercase();
            capital.chain(characters).chain(['.']).collect()
        }
        _ => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use protocol::{PermissionId, RequestId, TurnState};

    use super::*;

    /// What a caller reads: the code, and what happened this time.
    fn told(error: SessionError) -> (ErrorCode, u16, String) {
        let problem = session_problem(error).into_body(RequestId::generate());
        (problem.code, problem.status, problem.detail)
    }

    #[test]
    fn each_error_has_its_code_and_says_what_happened() {
        let (session, turn) = (SessionId::generate(), TurnId::generate());
        let permission = PermissionId::generate();
        let is = |code: ErrorCode, status: u16, detail: &str| (code, status, detail.to_owned());
        for (error, expected) in [
            (
                SessionError::NotFound(session),
                is(
                    ErrorCode::SessionNotFound,
                    404,
                    &format!("There is no session {session}."),
                ),
            ),
            (
                SessionError::TurnNotFound(turn),
                is(ErrorCode::TurnNotFound, 404, &format!("There is no turn {turn}.")),
            ),
            (
                SessionError::AgentNotFound {
                    name: "a".to_owned(),
                    known: vec!["b".to_owned(), "c".to_owned()],
                },
                is(
                    ErrorCode::AgentNotFound,
                    404,
                    "There is no agent `a`. There are: b, c.",
                ),
            ),
            (
                SessionError::AgentNotReady {
                    name: "model".to_owned(),
                    missing: "set OPENAI_API_KEY.".to_owned(),
                },
                is(
                    ErrorCode::AgentNotReady,
                    424,
                    "The agent `model` cannot be asked: set OPENAI_API_KEY.",
                ),
            ),
            (
                SessionError::TurnActive { session, turn },
                is(
                    ErrorCode::TurnActive,
                    409,
                    &format!("A turn runs already in {session}. It is {turn}."),
                ),
            ),
            (
                SessionError::TurnNotActive {
                    session,
                    turn,
                    state: TurnState::Done,
                },
                is(
                    ErrorCode::TurnNotActive,
                    409,
                    &format!("{turn} does not run in {session}. It is done."),
                ),
            ),
            (
                SessionError::TurnNotQueued {
                    turn,
                    state: TurnState::Running,
                },
                is(
                    ErrorCode::TurnNotQueued,
                    409,
                    &format!("{turn} does not wait any more: it is running."),
                ),
            ),
            (
                SessionError::NotStale { turn },
                is(
                    ErrorCode::TurnNotStale,
                    409,
                    &format!("{turn} is not stale: its owner is there."),
                ),
            ),
            (
                SessionError::PermissionNotFound { session, permission },
                is(
                    ErrorCode::PermissionNotFound,
                    404,
                    &format!("There is no open question {permission} in {session}."),
                ),
            ),
            (
                SessionError::QueueFull { session, limit: 256 },
                is(
                    ErrorCode::QueueFull,
                    429,
                    &format!("256 prompts wait already in {session}."),
                ),
            ),
            (
                SessionError::Invalid {
                    what: "the prompt is empty".to_owned(),
                },
                is(ErrorCode::InvalidPrompt, 422, "The prompt is empty."),
            ),
            (
                SessionError::KeyReused { turn },
                is(
                    ErrorCode::IdempotencyKeyReused,
                    409,
                    "The idempotency key was used for another prompt.",
                ),
            ),
            (
                SessionError::Closed,
                is(ErrorCode::ShuttingDown, 503, "The daemon takes no more prompts."),
            ),
        ] {
            assert_eq!(told(error), expected);
        }
    }
}
