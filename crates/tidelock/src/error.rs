//! Failures of commands.
//!
//! Each family of operations has its own error type. Here they all become a [`Failure`]: a stable code, a sentence,
//! what to do next, and the exit code.

use std::error::Error;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use daemon::{HomeError, HomeIdentityError, ImportLogError, LogStartError, OwnershipError};
use serde::Serialize;

use crate::client::{ClientError, Refusal};

/// The error code if a daemon was not started because another one is running.
pub(crate) const ALREADY_RUNNING: &str = "already_running";

/// The error code if a daemon does not answer, or stops in the middle of an answer.
pub(crate) const UNREACHABLE: &str = "daemon_unreachable";

/// How the process ends. Documented in `tidelock --help` and in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failed,
    Usage,
    /// The daemon can't be reached or started.
    Unreachable,
    /// The requested item does not exist, or has changed since the caller read it.
    Refused,
    /// The exit code of a job's command, or a substitute for it.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::Refused => 4,
            Exit::Command(code) => code,
        })
    }
}

/// A command that failed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    /// A stable name for programs.
    pub(crate) code: String,
    /// What happened, for people.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) advice: Option<String>,
    /// The request's id in the daemon's log.
    pub(crate) request_id: Option<String>,
    /// The current state, if a write was refused because the state had changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<Box<serde_json::Value>>,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, message: impl Into<String>) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.into(),
            advice: None,
            request_id: None,
            current: None,
            exit,
        }
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Failure {
        self.advice = Some(advice.into());
        self
    }

    /// Arguments that the parser rejected, in one line.
    pub(crate) fn usage(error: &clap::Error) -> Failure {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Failure::new(Exit::Usage, "usage", "a command is missing")
                .advise("see `tidelock --help`");
        }
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        let message = match (first.ends_with(':'), error.get(ContextKind::InvalidArg)) {
            // The parser lists what is missing in the lines below.
            (true, Some(ContextValue::Strings(missing))) => format!("{message} {}", missing.join(", ")),
            _ => message.to_owned(),
        };
        Failure::new(Exit::Usage, "usage", message).advise("see `tidelock --help`")
    }
}

/// An error and all of its causes, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Failure {
        Failure::new(Exit::Unreachable, "home_unusable", chain(&error)).advise(error.advice())
    }
}

impl From<OwnershipError> for Failure {
    fn from(error: OwnershipError) -> Failure {
        let code = match error {
            OwnershipError::Taken { .. } => ALREADY_RUNNING,
            OwnershipError::File { .. } => "home_unusable",
        };
        Failure::new(Exit::Unreachable, code, chain(&error)).advise(error.advice())
    }
}

impl From<ImportLogError> for Failure {
    fn from(error: ImportLogError) -> Failure {
        let exit = match error.code() {
            "log_not_empty" => Exit::Refused,
            "archive_unusable" => Exit::Failed,
            _ => Exit::Unreachable,
        };
        Failure::new(exit, error.code(), chain(&error)).advise(error.advice())
    }
}

impl From<HomeIdentityError> for Failure {
    fn from(error: HomeIdentityError) -> Failure {
        let message = chain(&error);
        match error {
            HomeIdentityError::Home(error) => error.into(),
            HomeIdentityError::Ownership(error) => error.into(),
            HomeIdentityError::Log(error) => {
                let exit = match error {
                    LogStartError::Copied { .. } => Exit::Refused,
                    _ => Exit::Unreachable,
                };
                Failure::new(exit, error.code(), message).advise(error.advice())
            }
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let message = chain(&error);
        let (code, advice) = match error {
            ClientError::Refused(refusal) => return (*refusal).into(),
            ClientError::Home(error) => return error.into(),
            ClientError::Output { .. } => {
                return Failure::new(Exit::Failed, "output_failed", message)
                    .advise("make sure that there's enough space where the output goes, and try again");
            }
            ClientError::Unreachable { .. } => (UNREACHABLE, "start it with `tidelock up`"),
            ClientError::ForeignPeer { .. } => (
                "home_unusable",
                "another user's process owns the socket: stop that process, or set TIDELOCK_HOME to a private directory",
            ),
            ClientError::Token { .. } => (
                "token_unreadable",
                "run `tidelock doctor`; the daemon creates the file when it starts",
            ),
            ClientError::Timeout { .. } | ClientError::Broken { .. } => (
                UNREACHABLE,
                "run `tidelock doctor`, or restart the daemon: `tidelock down && tidelock up`",
            ),
            ClientError::TooLarge | ClientError::NotUnderstood { .. } => (
                "answer_not_understood",
                "the daemon may be running another version; restart it: `tidelock down && tidelock up`",
            ),
        };
        Failure::new(Exit::Unreachable, code, message).advise(advice)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let exit = match refusal.status {
            404 | 409 | 410 | 412 => Exit::Refused,
            _ if refusal.is_about_the_daemons_end() => Exit::Unreachable,
            _ => Exit::Failed,
        };
        // The daemon's advice is written for programs that speak HTTP.
        let advice = match refusal.code.as_str() {
            "breaker_unknown" => {
                "an unknown breaker counts as closed; `tidelock breaker list` shows the known ones"
            }
            "stale_generation" if refusal.is_about_a_server() => {
                "it changed in the meantime; check it with `tidelock lsp list`, then try again"
            }
            "server_not_found" => {
                "`tidelock lsp list` shows the servers that were used, `tidelock lsp config` the configured ones"
            }
            "server_restarting" => "try again in a moment, or leave --no-wait out",
            "server_not_ready" => "use --wait-ready, or try again in a moment",
            "server_timeout" => "try again with a larger --timeout, or check `tidelock lsp list`",
            "server_not_installed" => {
                "install it as described above and try again; you don't need to restart anything"
            }
            "server_failed" => {
                "check `tidelock lsp health` and `tidelock lsp log`, fix the problem, then run `tidelock lsp restart`"
            }
            "server_error" => "`tidelock lsp log` shows the server's messages; it may need different input",
            "position_invalid" => "lines and columns count from 1, and columns count characters",
            "file_not_usable" => "choose a file that exists, is UTF-8 text, and isn't too large",
            "job_not_found" => "`tidelock job list` shows the jobs; jobs that ended long ago are deleted",
            "job_ended" => "to run it again, use `tidelock job retry`",
            "job_not_ended" => "wait until it ends with `tidelock job wait`, or cancel it first",
            "idempotency_key_reused" => "use a new --key for a new request",
            "job_dependency_not_found" => "use jobs that `tidelock job list` shows",
            "plan_not_found" => "`tidelock plan list --all` shows the plans",
            "changeset_not_found" => "`tidelock plan changesets` shows the changesets of a plan",
            "file_not_found" => "`tidelock plan cat PLAN` lists the root of its sandbox",
            "workspace_not_found" => "`tidelock workspace list` shows the workspaces",
            "plan_wrong_state" => "`tidelock plan show` shows its state and what you can do",
            "plan_busy" => {
                "wait until it finishes (see `tidelock plan show`), or cancel it with `tidelock job cancel`"
            }
            "plan_has_work" => "apply it, or discard it with `tidelock plan discard --force`",
            "checks_not_passed" => "run them with `tidelock plan check`, then apply it again",
            "workspace_in_use" => {
                "apply or discard its plans first; `tidelock plan list --workspace DIR` shows them"
            }
            "workspace_gone" => "put the directory back, or run `tidelock workspace forget`",
            "file_refused" | "file_stale" => "check the file with `tidelock plan cat`, then try again",
            "git_commit_refused" => "apply it without --commit, or fix the problem described above",
            "strategy_not_possible" => {
                "leave --strategy out; `tidelock doctor` shows which strategies work here"
            }
            "path_not_allowed" => {
                "give the path relative to the root of the workspace, as `tidelock plan diff` shows it"
            }
            "session_not_found" => "`tidelock session list --all` shows the sessions",
            "turn_not_found" => "`tidelock session show` shows the turns of a session",
            "agent_not_found" => "`tidelock agent list` shows the agents",
            "agent_not_ready" => "`tidelock agent list` says what is missing",
            "permission_not_found" => {
                "someone else may have answered, or it timed out; `tidelock session show` shows the open questions"
            }
            "turn_active" => {
                "leave --refuse out to queue the prompt, or stop the turn with `tidelock session cancel`"
            }
            "turn_not_active" | "turn_not_queued" => "`tidelock session show` shows what happened to it",
            "session_archived" => "unarchive it with `tidelock session archive --undo`",
            "session_in_use" => "stop its running and waiting turns with `tidelock session cancel` first",
            "session_has_forks" => "remove its forks first; `tidelock session list --all` shows them",
            "queue_full" => "wait until some have run, or remove one with `tidelock session queue`",
            "strategy_not_found" => "use one of these with --only or --without",
            "focus_not_found" => {
                "choose a file that exists; if it's only in a plan, give its path from the root of the workspace"
            }
            "context_too_large" => "ask for less",
            "process_not_found" => "`tidelock ps` lists the processes that the daemon owns",
            "stale_generation" => {
                "it changed in the meantime; check it with `tidelock breaker show`, then try again"
            }
            "unauthorized" => "run `tidelock doctor`; the token file may belong to another daemon",
            _ => &refusal.advice,
        };
        Failure {
            advice: Some(advice.to_owned()).filter(|advice| !advice.is_empty()),
            code: refusal.code.clone(),
            message: refusal.detail,
            request_id: refusal.request_id,
            current: refusal.current.map(Box::new),
            exit,
        }
    }
}
