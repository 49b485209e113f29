//! Errors of tools, as texts for a model: what happened, and what to do next.

use protocol::ErrorCode;

use crate::http::Problem;

/// Why a tool call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// The operation was refused.
    #[error("{}", .0.detail())]
    Problem(Box<Problem>),
    /// The arguments are invalid.
    #[error("{0}")]
    Arguments(String),
    #[error("you have no open plan")]
    NoPlan,
    #[error("the directory is unknown")]
    NoDirectory,
    #[error("too many calls of this client are running")]
    TooManyCalls,
    #[error("the call was cancelled")]
    Cancelled,
    /// The owner of this machine doesn't allow it.
    #[error("{0}")]
    NotAllowed(String),
}

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl ToolError {
    pub(super) fn argument(name: &str, why: &str) -> Self {
        Self::Arguments(format!("`{name}`: {why}"))
    }

    /// Converts an argument error of the shared tools.
    pub(super) fn of_arguments(error: sessions::tools::ToolError) -> Self {
        match error {
            sessions::tools::ToolError::Arguments { tool, wrong, takes } => {
                Self::Arguments(format!("{wrong}. `{tool}` takes {takes}"))
            }
            sessions::tools::ToolError::Plan(error) => Problem::from(error).into(),
            other => Self::Arguments(other.to_string()),
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Problem(problem) => problem.code().as_str(),
            Self::Arguments(_) => "invalid_arguments",
            Self::NoPlan => "no_open_plan",
            Self::NoDirectory => "no_directory",
            Self::TooManyCalls => "too_many_calls",
            Self::Cancelled => "cancelled",
            Self::NotAllowed(_) => "not_allowed",
        }
    }

    /// The whole error as text.
    pub(super) fn text(&self) -> String {
        let what = match self {
            Self::Problem(problem) => problem.detail().to_owned(),
            other => sentence(&other.to_string()),
        };
        format!(
            "error: {}\n{what}\nWhat to do next: {}\n",
            self.code(),
            self.next()
        )
    }

    fn next(&self) -> String {
        let text = match self {
            Self::Problem(problem) => {
                return match advice(problem.code()) {
                    Some(advice) => advice.to_owned(),
                    None => sentence(problem.code().advice()),
                };
            }
            Self::Arguments(_) => "correct this argument and call the tool again.",
            Self::NoPlan => "call plan_open first, or pass the id of one as `plan`.",
            Self::NoDirectory => "call it again with `directory`, the absolute path of the repository.",
            Self::TooManyCalls => "wait until some of your calls have been answered, then call it again.",
            Self::Cancelled => "nothing; call it again if you still want it.",
            Self::NotAllowed(_) => "tell the user, who can do it on the page or on the command line.",
        };
        text.to_owned()
    }
}

/// What a model should do about a problem, if that differs from what a person would do. The tools of sessions have
/// their own hints (`sessions::tools::ToolError`): they know plans but no error codes, and their tools have other
/// names.
fn advice(code: ErrorCode) -> Option<&'static str> {
    let text = match code {
        ErrorCode::PlanNotFound => "call plan_open, or leave `plan` out to use your own.",
        ErrorCode::PlanWrongState => {
            "the plan is closed or doesn't allow this in its current state. Call plan_open for new work; the resource tidelock://overview shows all plans."
        }
        ErrorCode::PlanBusy => {
            "a command is still running in the plan. Wait for its job with job_status, or stop it with job_cancel."
        }
        ErrorCode::ChecksNotPassed => "call plan_check, fix what fails, and call this tool again.",
        ErrorCode::FileNotFound => {
            "list the directory with plan_read, or search with plan_shell and context."
        }
        ErrorCode::FileRefused => {
            "read the file with plan_read first. For plan_edit, `find` must occur exactly once: include more of the surrounding lines."
        }
        ErrorCode::FileStale => {
            "the file has changed since you read it. Read it again, then redo your change if it still applies."
        }
        ErrorCode::PathNotAllowed => "give the path relative to the root of the workspace, without `..`.",
        ErrorCode::StaleGeneration => {
            "the plan has changed in the meantime. Check plan_diff, then call this tool again."
        }
        ErrorCode::JobNotFound => {
            "job_start and plan_shell return the id of a job; call job_status without an id to list the jobs."
        }
        ErrorCode::JobEnded => {
            "nothing: the job has ended. job_status shows the result, job_logs the output."
        }
        ErrorCode::ServerNotReady => {
            "the language server is still reading the workspace. Try again in a few seconds."
        }
        ErrorCode::ServerRestarting => "try again in a moment.",
        ErrorCode::ServerNotInstalled | ErrorCode::NoServerForFile => {
            "there is no language server for this file. Use context, or search with plan_shell."
        }
        ErrorCode::QueryUnsupported => {
            "this language server doesn't support that query. Use another lsp tool, or context."
        }
        _ => return None,
    };
    Some(text)
}

/// Capitalizes a text and ends it with a period.
fn sentence(text: &str) -> String {
    let mut characters = text.trim().chars();
    let Some(first) = characters.next() else {
        return String::new();
    };
    let mut text: String = first.to_uppercase().chain(characters).collect();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_happened_and_what_to_do() {
        let problem = |code, detail: &str| ToolError::from(Problem::new(code, detail));
        for (error, expected) in [
            (
                ToolError::NoPlan,
                "error: no_open_plan\nYou have no open plan.\nWhat to do next: call plan_open first, or pass the id of one as \
                 `plan`.\n",
            ),
            (
                ToolError::argument("path", "is missing"),
                "error: invalid_arguments\n`path`: is missing.\nWhat to do next: correct this argument and call the tool \
                 again.\n",
            ),
            (
                problem(ErrorCode::JobEnded, "It has ended."),
                "error: job_ended\nIt has ended.\nWhat to do next: nothing: the job has ended. job_status shows the result, \
                 job_logs the output.\n",
            ),
        ] {
            assert_eq!(error.text(), expected);
        }
        let other = problem(ErrorCode::SandboxesFull, "There is no room.");
        assert!(
            other
                .text()
                .contains(ErrorCode::SandboxesFull.advice().trim_end_matches('.')),
            "{}",
            other.text()
        );
    }
}
