//! Converts errors of language servers to problems, and declares the codes that each operation can fail with.

use lsp::{AskError, LifecycleError, QueryError, RequestError, SentError};
use protocol::ErrorCode;

use crate::http::Problem;
use crate::http::log_problem::WriteLog;
use crate::http::refusals::families;

families! {
    Find = [InvalidName, ServerNotFound];
    /// A process of a server is started, stopped or waited for.
    Process = [ServerRestarting, ServerFailed, ServerStopped, ServerTimeout, ShuttingDown];
    Change = [StaleGeneration] + Find + Process;
    ReadConfig = [FileNotUsable];
    TrustConfig = [StaleGeneration] + ReadConfig + WriteLog;
    Start = [ServerNotFound, NoServerForFile, ServerNotInstalled] + ReadConfig + Process;
    Ask = [QueryUnsupported, ServerNotReady, PositionInvalid, ServerError, ServerProtocol] + Start;
    Request = [ServerNotReady, ServerError, ServerProtocol] + Find + Process;
}

/// The problem of a question that was not answered.
pub(super) fn to_problem(error: AskError) -> Problem {
    let code = code_of(&error);
    let detail = match &error {
        AskError::NotInstalled { missing, .. } => {
            let ways: Vec<String> = missing
                .iter()
                .map(|missing| format!("{}: {}", missing.name, missing.program.install))
                .collect();
            format!("{error}. Install one of these: {}.", ways.join("; "))
        }
        AskError::Query(QueryError::Refused { refusal, .. }) => format!("{error}: {refusal}."),
        _ => format!("{error}."),
    };
    let notes = match &error {
        AskError::NoServer { notes, .. } | AskError::NotInstalled { notes, .. } => notes.as_slice(),
        _ => &[],
    };
    // Perhaps the missing server is in a configuration that isn't used.
    let notes: String = notes.iter().map(|note| format!(" Note: {note}.")).collect();
    Problem::new(code, format!("{}{notes}", capitalised(&detail)))
}

/// The code of a question that was not answered.
pub(super) fn code_of(error: &AskError) -> ErrorCode {
    match error {
        AskError::Path(_) | AskError::Text(_) | AskError::Workspace(_) | AskError::Document(_) => {
            ErrorCode::FileNotUsable
        }
        AskError::NoServer { .. } => ErrorCode::NoServerForFile,
        AskError::OtherServer { .. } | AskError::UnknownId { .. } => ErrorCode::ServerNotFound,
        AskError::NotInstalled { .. } => ErrorCode::ServerNotInstalled,
        AskError::Lifecycle { source, .. } | AskError::StopOfAll(source) => of_lifecycle(source),
        AskError::Moved { .. } => ErrorCode::StaleGeneration,
        AskError::NotReady { .. } => ErrorCode::ServerNotReady,
        AskError::Query(error) => of_query(error),
        AskError::Request { source, .. } => of_request(source),
        AskError::Sent { source, .. } => match source {
            SentError::GenerationOver { .. } => ErrorCode::ServerRestarting,
            SentError::DeadlineExceeded => ErrorCode::ServerTimeout,
            SentError::Cancelled { .. } => ErrorCode::ShuttingDown,
        },
        AskError::WentAway { .. } => ErrorCode::ServerRestarting,
        AskError::ShuttingDown => ErrorCode::ShuttingDown,
    }
}

fn of_lifecycle(error: &LifecycleError) -> ErrorCode {
    match error {
        LifecycleError::ServerNotFound { .. } => ErrorCode::ServerNotFound,
        LifecycleError::ServerRestarting { .. } => ErrorCode::ServerRestarting,
        LifecycleError::ServerFailed { .. } | LifecycleError::TooManyServers { .. } => {
            ErrorCode::ServerFailed
        }
        LifecycleError::ServerStopped => ErrorCode::ServerStopped,
        LifecycleError::ServerMoved { .. } => ErrorCode::StaleGeneration,
        LifecycleError::RequestTimeout { .. } => ErrorCode::ServerTimeout,
        LifecycleError::Cancelled { .. } => ErrorCode::ShuttingDown,
    }
}

fn of_query(error: &QueryError) -> ErrorCode {
    match error {
        QueryError::Unsupported { .. } => ErrorCode::QueryUnsupported,
        QueryError::Refused { .. } | QueryError::NotRenamable { .. } => ErrorCode::ServerError,
        QueryError::NotReady { .. } => ErrorCode::ServerNotReady,
        QueryError::Position(_) => ErrorCode::PositionInvalid,
        QueryError::Uri(_) | QueryError::NotOpen { .. } => ErrorCode::FileNotUsable,
        QueryError::Broken { .. }
        | QueryError::BadEdit { .. }
        | QueryError::Unreadable { .. }
        | QueryError::TooManyEdits { .. } => ErrorCode::ServerProtocol,
    }
}

fn of_request(error: &RequestError) -> ErrorCode {
    match error {
        RequestError::Response(_) => ErrorCode::ServerError,
        RequestError::Timeout { .. } | RequestError::TooManyPending { .. } => ErrorCode::ServerTimeout,
        RequestError::Cancelled { .. } => ErrorCode::ShuttingDown,
        RequestError::Closed { .. } => ErrorCode::ServerRestarting,
        RequestError::Oversized { .. } => ErrorCode::ServerProtocol,
        RequestError::Encode(_) => ErrorCode::InvalidRequest,
    }
}

fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    match characters.next() {
        Some(first)
            if ["no ", "there ", "you ", "all "]
                .iter()
                .any(|word| sentence.starts_with(word)) =>
        {
            first.to_uppercase().chain(characters).collect()
        }
        _ => sentence.to_owned(),
    }
}
