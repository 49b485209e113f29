//! Converts errors of sessions to problems, and declares the codes that each operation on a session can fail with.

use eventlog::{BlobError, LogError};
use protocol::ErrorCode;
use sessions::SessionError;

use crate::http::log_problem::{ReadLog, WriteLog, unreadable};
use crate::http::problem::{Problem, Subject};
use crate::http::refusals::families;
use crate::jobs::wire::invalid;
use crate::sessions::wire;

families! {
    List = [RecordUnreadable, ShuttingDown] + ReadLog;
    Read = [SessionNotFound] + List;
    ReadTurn = [TurnNotFound] + Read;
    /// A session is changed. The change fails if the session moves on each time it is tried.
    Change = [StaleGeneration] + Read + WriteLog;
    ChooseAgent = [AgentNotFound, AgentNotReady, InvalidPrompt];
    Open = [PlanNotFound, InvalidRequest] + List + ChooseAgent + WriteLog;
    Prompt = [TurnActive, SessionArchived, IdempotencyKeyReused, QueueFull, InvalidRequest] + Change + ChooseAgent;
    ChangeQueued = [TurnNotFound, TurnNotQueued] + Change;
    EditQueued = [InvalidPrompt] + ChangeQueued;
    CancelTurn = [TurnNotFound, TurnNotActive] + Change;
    ClearStaleTurn = [TurnNotStale] + CancelTurn;
    Answer = [PermissionNotFound] + Change;
    Fork = [TurnNotFound, TurnActive, InvalidPrompt] + Change;
    Rename = [InvalidPrompt] + Change;
    SetAgent = [] + Change + ChooseAgent;
    Archive = [SessionInUse] + Change;
    MoveHere = [InvalidRequest] + Change;
    Remove = [SessionHasForks] + Archive;
}

/// An error that depends on the state of a session or turn includes it.
impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        match (subject(&error), error) {
            (_, SessionError::Plan { source, .. }) => Self::from(*source).in_field("plan"),
            (None, error) => without_subject(error),
            (Some(subject), error) => without_subject(error).about(subject),
        }
    }
}

fn subject(error: &SessionError) -> Option<Subject> {
    match error {
        SessionError::TurnActive { session, .. }
        | SessionError::TurnNotActive { session, .. }
        | SessionError::Archived(session)
        | SessionError::InUse(session)
        | SessionError::HasForks { session, .. }
        | SessionError::QueueFull { session, .. } => Some(Subject::Session(*session)),
        SessionError::TurnNotQueued { turn, .. } | SessionError::KeyReused { turn } => {
            Some(Subject::Turn(*turn))
        }
        _ => None,
    }
}

fn without_subject(error: SessionError) -> Problem {
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
            return Problem::new(
                ErrorCode::ShuttingDown,
                "The daemon is shutting down and accepts no more prompts.",
            );
        }
        SessionError::Log(error) | SessionError::Blob(BlobError::Log(error)) => return error.into(),
        SessionError::Commit(error) => return error.into(),
        // The stored data comes from a daemon of another version, or is damaged.
        SessionError::Unreadable { .. } => return unreadable(&error),
        error @ (SessionError::Plan { .. } | SessionError::Blob(_)) => {
            return Problem::internal(error);
        }
    };
    Problem::new(code, detail)
}

/// An error as a sentence. An id at its beginning keeps its case.
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
    use protocol::{PermissionId, RequestId, SessionId, TurnId, TurnState};

    use super::*;

    /// What the caller sees: the code, the status and what happened this time.
    fn told(error: SessionError) -> (ErrorCode, u16, String) {
        let problem = without_subject(error).into_body(RequestId::generate());
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
                    "The agent `model` is not ready: set OPENAI_API_KEY.",
                ),
            ),
            (
                SessionError::TurnActive { session, turn },
                is(
                    ErrorCode::TurnActive,
                    409,
                    &format!("A turn is already running in {session}. It is {turn}."),
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
                    &format!("{turn} is not running in {session}. It is done."),
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
                    &format!("{turn} is no longer queued: it is running."),
                ),
            ),
            (
                SessionError::NotStale { turn },
                is(
                    ErrorCode::TurnNotStale,
                    409,
                    &format!("{turn} is not stale: the daemon that runs it is alive."),
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
                    &format!("{session} already has 256 queued prompts."),
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
                is(
                    ErrorCode::ShuttingDown,
                    503,
                    "The daemon is shutting down and accepts no more prompts.",
                ),
            ),
        ] {
            assert_eq!(told(error), expected);
        }
    }
}
