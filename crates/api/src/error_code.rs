//! The stable names of everything that can go wrong over HTTP.
//!
//! A name is never given another meaning. Each one has a section in `docs/errors.md`; a test keeps the two
//! lists equal.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The stable name of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The body is not JSON.
    MalformedJson,
    /// A name is empty, too long, or has control characters in it.
    InvalidName,
    /// A parameter of the query, or the header `Last-Event-ID`, cannot be understood.
    InvalidQuery,
    /// Neither a valid token nor a valid session came with the request.
    Unauthorized,
    /// The request comes from a page of somebody else.
    OriginNotAllowed,
    /// A form was sent without the token that the page put into it.
    FormTokenInvalid,
    /// There is nothing at this path.
    NotFound,
    /// No breaker of this name is known.
    BreakerUnknown,
    /// The process is not there, or was not started by this daemon.
    ProcessNotFound,
    /// No language server of this name or id is known.
    ServerNotFound,
    /// No language server is configured for files of this kind.
    NoServerForFile,
    /// There is no job of this id.
    JobNotFound,
    /// There is no plan of this id.
    PlanNotFound,
    /// There is no changeset of this id in the plan.
    ChangesetNotFound,
    /// There is nothing at this path of a plan's sandbox.
    FileNotFound,
    /// There is no workspace of this id.
    WorkspaceNotFound,
    /// The path exists and does not take this method.
    MethodNotAllowed,
    /// The request did not arrive in time.
    RequestTimeout,
    /// The write named a generation that is no longer the current one.
    StaleGeneration,
    /// There is a file where the backup shall be.
    BackupExists,
    /// The language server was stopped by hand.
    ServerStopped,
    /// The job has ended, and what was asked for makes sense only before.
    JobEnded,
    /// The job has not ended yet, and what was asked for makes sense only then.
    JobNotEnded,
    /// The idempotency key belongs to a job or a plan that was asked for in other words.
    IdempotencyKeyReused,
    /// The caller has no changeset that is open.
    NoActiveChangeset,
    /// The changeset takes no more.
    ChangesetClosed,
    /// It makes no sense in the state that the plan is in.
    PlanWrongState,
    /// Commands run in the plan, or it is being applied.
    PlanBusy,
    /// The plan has work in it that was not applied.
    PlanHasWork,
    /// Checks of the plan have not passed for what is in it now.
    ChecksNotPassed,
    /// The sandbox of the plan is on another machine.
    PlanElsewhere,
    /// The workspace has plans that are not over.
    WorkspaceInUse,
    /// A write to a file of the sandbox was refused.
    FileRefused,
    /// The file is not what the caller saw.
    FileStale,
    /// A git commit was wanted and cannot be made.
    GitCommitRefused,
    /// The sandbox of the plan was collected.
    SandboxGone,
    /// The workspace has moved or vanished.
    WorkspaceGone,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// The body is not of a media type that is understood here.
    UnsupportedMediaType,
    /// The request was meant for another host.
    HostNotAllowed,
    /// The body is JSON and does not have the right shape.
    InvalidRequest,
    /// The file cannot be read as a text.
    FileNotUsable,
    /// There is no such line or column in the file.
    PositionInvalid,
    /// A job that shall be waited for is not there.
    JobDependencyNotFound,
    /// The plans of one apply do not belong together.
    PlansNotTogether,
    /// Plans would be nested too deeply.
    PlanTooDeep,
    /// The directory cannot be a workspace, or cannot be read as one.
    WorkspaceUnusable,
    /// Sandboxes cannot be made in this way here.
    StrategyNotPossible,
    /// The path cannot be the path of a file in a workspace.
    PathNotAllowed,
    /// A language server for the file is known and its program is not on this machine.
    ServerNotInstalled,
    /// As many streams are open as the daemon allows.
    StreamLimitReached,
    /// As many jobs wait as the daemon allows.
    JobsFull,
    /// Something broke inside the daemon.
    Internal,
    /// The durable log could not be read.
    LogFailed,
    /// The copy of the log could not be written.
    BackupFailed,
    /// A file of a sandbox or of a workspace could not be read or written.
    SandboxFailed,
    /// The log is kept by a database server, which has its own tools.
    BackupNotSupported,
    /// The language server does not offer this.
    QueryUnsupported,
    /// The language server could not be started, or crashed too often.
    ServerFailed,
    /// The language server answered with an error.
    ServerError,
    /// The language server broke the protocol.
    ServerProtocol,
    /// The daemon does not take work yet, or no longer.
    NotReady,
    /// The daemon is shutting down and takes no new requests.
    ShuttingDown,
    /// The table of breakers is full of names that are in use.
    BreakerLimitReached,
    /// The durable log refuses writes.
    LogRefusing,
    /// The language server is being started, and the caller did not want to wait.
    ServerRestarting,
    /// The language server is still reading the workspace.
    ServerNotReady,
    /// The language server did not answer in time.
    ServerTimeout,
    /// There is no room for another sandbox.
    SandboxesFull,
}

/// What is the same for every problem with one code.
struct Description {
    name: &'static str,
    status: u16,
    title: &'static str,
    advice: &'static str,
}

impl ErrorCode {
    /// Every code, in the order of `docs/errors.md`.
    pub const ALL: [Self; 69] = [
        Self::MalformedJson,
        Self::InvalidName,
        Self::InvalidQuery,
        Self::Unauthorized,
        Self::OriginNotAllowed,
        Self::FormTokenInvalid,
        Self::NotFound,
        Self::BreakerUnknown,
        Self::ProcessNotFound,
        Self::ServerNotFound,
        Self::NoServerForFile,
        Self::JobNotFound,
        Self::PlanNotFound,
        Self::ChangesetNotFound,
        Self::FileNotFound,
        Self::WorkspaceNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::StaleGeneration,
        Self::BackupExists,
        Self::ServerStopped,
        Self::JobEnded,
        Self::JobNotEnded,
        Self::IdempotencyKeyReused,
        Self::NoActiveChangeset,
        Self::ChangesetClosed,
        Self::PlanWrongState,
        Self::PlanBusy,
        Self::PlanHasWork,
        Self::ChecksNotPassed,
        Self::PlanElsewhere,
        Self::WorkspaceInUse,
        Self::FileRefused,
        Self::FileStale,
        Self::GitCommitRefused,
        Self::SandboxGone,
        Self::WorkspaceGone,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::HostNotAllowed,
        Self::InvalidRequest,
        Self::FileNotUsable,
        Self::PositionInvalid,
        Self::JobDependencyNotFound,
        Self::PlansNotTogether,
        Self::PlanTooDeep,
        Self::WorkspaceUnusable,
        Self::StrategyNotPossible,
        Self::PathNotAllowed,
        Self::ServerNotInstalled,
        Self::StreamLimitReached,
        Self::JobsFull,
        Self::Internal,
        Self::LogFailed,
        Self::BackupFailed,
        Self::SandboxFailed,
        Self::BackupNotSupported,
        Self::QueryUnsupported,
        Self::ServerFailed,
        Self::ServerError,
        Self::ServerProtocol,
        Self::NotReady,
        Self::ShuttingDown,
        Self::BreakerLimitReached,
        Self::LogRefusing,
        Self::ServerRestarting,
        Self::ServerNotReady,
        Self::ServerTimeout,
        Self::SandboxesFull,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.describe().name
    }

    /// The HTTP status that goes with the code.
    #[must_use]
    pub fn status(self) -> u16 {
        self.describe().status
    }

    /// The code in words.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.describe().title
    }

    /// What to do next, when nothing better is known.
    #[must_use]
    pub fn advice(self) -> &'static str {
        self.describe().advice
    }

    /// The reference to the section of the documentation, relative to the daemon.
    #[must_use]
    pub fn reference(self) -> String {
        format!("/docs/errors#{}", self.as_str())
    }

    fn describe(self) -> Description {
        let (name, status, title, advice) = match self {
            Self::MalformedJson => (
                "malformed_json",
                400,
                "The body is not JSON",
                "Correct the JSON at the given line and column, and send it again.",
            ),
            Self::InvalidName => (
                "invalid_name",
                400,
                "The name is not valid",
                "Use a name of 1 to 128 bytes without control characters, percent-encoded in the path.",
            ),
            Self::InvalidQuery => (
                "invalid_query",
                400,
                "The query is not valid",
                "Correct the named parameter; /openapi.json describes them.",
            ),
            Self::Unauthorized => (
                "unauthorized",
                401,
                "No valid token or session",
                "Send `Authorization: Bearer TOKEN` with the content of the token file, or run `tidelock up` \
                 and open the link that it prints.",
            ),
            Self::OriginNotAllowed => (
                "origin_not_allowed",
                403,
                "The request comes from a foreign page",
                "Send the request from the daemon's own page, or from a program that sets no Origin header.",
            ),
            Self::FormTokenInvalid => (
                "form_token_invalid",
                403,
                "The form is not from this session",
                "Load the page again and send the form from there.",
            ),
            Self::NotFound => (
                "not_found",
                404,
                "There is nothing here",
                "Compare the path with the list at /openapi.json.",
            ),
            Self::BreakerUnknown => (
                "breaker_unknown",
                404,
                "No breaker has this name",
                "An unknown name counts as closed. GET /v1/breakers lists the known ones.",
            ),
            Self::ProcessNotFound => (
                "process_not_found",
                404,
                "The daemon owns no such process",
                "GET /v1/processes lists the processes that this daemon has started.",
            ),
            Self::ServerNotFound => (
                "server_not_found",
                404,
                "No language server has this name",
                "GET /v1/lsp/servers lists those that were used, GET /v1/lsp/config those that are configured.",
            ),
            Self::NoServerForFile => (
                "no_server_for_file",
                404,
                "No language server is for this file",
                "Name a file of a language that `tidelock lsp config` lists, or configure a server for it.",
            ),
            Self::JobNotFound => (
                "job_not_found",
                404,
                "There is no such job",
                "GET /v1/jobs lists the jobs; those that ended long ago are forgotten.",
            ),
            Self::PlanNotFound => (
                "plan_not_found",
                404,
                "There is no such plan",
                "GET /v1/plans lists the plans.",
            ),
            Self::ChangesetNotFound => (
                "changeset_not_found",
                404,
                "There is no such changeset in the plan",
                "GET /v1/plans/{id}/changesets lists the changesets of the plan.",
            ),
            Self::FileNotFound => (
                "file_not_found",
                404,
                "There is nothing at this path of the sandbox",
                "Look at the directory with GET /v1/plans/{id}/file, and correct the path.",
            ),
            Self::WorkspaceNotFound => (
                "workspace_not_found",
                404,
                "There is no such workspace",
                "GET /v1/workspaces lists the workspaces.",
            ),
            Self::MethodNotAllowed => (
                "method_not_allowed",
                405,
                "The path does not take this method",
                "Use one of the methods in the Allow header.",
            ),
            Self::RequestTimeout => (
                "request_timeout",
                408,
                "The request did not arrive in time",
                "Send the whole request without long pauses.",
            ),
            Self::StaleGeneration => (
                "stale_generation",
                409,
                "The state has moved since you looked",
                "Look at `current`, decide again, and name its generation.",
            ),
            Self::BackupExists => (
                "backup_exists",
                409,
                "There is a file already",
                "Choose another path, or move the file away. It was not touched.",
            ),
            Self::ServerStopped => (
                "server_stopped",
                409,
                "The language server was stopped",
                "Start it again with `tidelock lsp start`, and ask again.",
            ),
            Self::JobEnded => (
                "job_ended",
                409,
                "The job has ended",
                "Look at `current`: this is how it ended, and that is final.",
            ),
            Self::JobNotEnded => (
                "job_not_ended",
                409,
                "The job has not ended yet",
                "Wait for its end with GET /v1/jobs/{id}?wait_ms=60000, or cancel it first.",
            ),
            Self::IdempotencyKeyReused => (
                "idempotency_key_reused",
                409,
                "The idempotency key belongs to another request",
                "Use a new key for something new; `current` is what has this one.",
            ),
            Self::NoActiveChangeset => (
                "no_active_changeset",
                409,
                "There is no active changeset",
                "Start one with POST /v1/plans/{id}/changesets, and record again.",
            ),
            Self::ChangesetClosed => (
                "changeset_closed",
                409,
                "The changeset is closed",
                "Start another one with POST /v1/plans/{id}/changesets.",
            ),
            Self::PlanWrongState => (
                "plan_wrong_state",
                409,
                "The plan is in another state",
                "Look at `current`, which is the plan, and do what its state allows.",
            ),
            Self::PlanBusy => (
                "plan_busy",
                409,
                "The plan is in use",
                "Wait for what `detail` names, or cancel it, and ask again.",
            ),
            Self::PlanHasWork => (
                "plan_has_work",
                409,
                "The plan has work that is not applied",
                "Apply the plan, or discard it with `even_with_work`.",
            ),
            Self::ChecksNotPassed => (
                "checks_not_passed",
                409,
                "Checks of the plan have not passed",
                "Run them with POST /v1/plans/{id}/check, wait for their end, and apply again.",
            ),
            Self::PlanElsewhere => (
                "plan_elsewhere",
                409,
                "The plan belongs to another daemon",
                "Ask the daemon that has the plan.",
            ),
            Self::WorkspaceInUse => (
                "workspace_in_use",
                409,
                "The workspace has plans that are not over",
                "Apply or discard its plans first.",
            ),
            Self::FileRefused => (
                "file_refused",
                409,
                "The file was not changed",
                "Read `detail`, look at the file, and decide again.",
            ),
            Self::FileStale => (
                "file_stale",
                409,
                "The file is not what you saw",
                "Read the file again, decide again, and name its hash.",
            ),
            Self::GitCommitRefused => (
                "git_commit_refused",
                409,
                "No git commit can be made",
                "Apply without `commit`, or mend what `detail` names.",
            ),
            Self::SandboxGone => (
                "sandbox_gone",
                410,
                "The sandbox of the plan is gone",
                "What the plan changed is still known; open another plan to go on.",
            ),
            Self::WorkspaceGone => (
                "workspace_gone",
                410,
                "The workspace is not where it was",
                "Put the directory back, or forget the workspace and open a plan at its new place.",
            ),
            Self::BodyTooLarge => (
                "body_too_large",
                413,
                "The body is too large",
                "Send a smaller body.",
            ),
            Self::UnsupportedMediaType => (
                "unsupported_media_type",
                415,
                "The media type is not understood",
                "Send JSON with `Content-Type: application/json`.",
            ),
            Self::HostNotAllowed => (
                "host_not_allowed",
                421,
                "The request is meant for another host",
                "Use 127.0.0.1 or localhost with the daemon's port, or start it with this name as an allowed host.",
            ),
            Self::InvalidRequest => (
                "invalid_request",
                422,
                "The body does not have the right shape",
                "Correct the named field; the shape is described at /openapi.json.",
            ),
            Self::FileNotUsable => (
                "file_not_usable",
                422,
                "The file cannot be used",
                "Name a file that exists, is text in UTF-8, and is not too large, by its absolute path.",
            ),
            Self::PositionInvalid => (
                "position_invalid",
                422,
                "There is no such place in the file",
                "Lines and columns count from 1, columns in characters. `detail` says how long the line is.",
            ),
            Self::JobDependencyNotFound => (
                "job_dependency_not_found",
                422,
                "A job to wait for is not there",
                "Name jobs in `after` that GET /v1/jobs lists, or leave it out.",
            ),
            Self::PlansNotTogether => (
                "plans_not_together",
                422,
                "The plans do not belong together",
                "Apply plans of one workspace or one parent together, and others by themselves.",
            ),
            Self::PlanTooDeep => (
                "plan_too_deep",
                422,
                "Plans would be nested too deeply",
                "Open the plan on the workspace, or on a plan further up.",
            ),
            Self::WorkspaceUnusable => (
                "workspace_unusable",
                422,
                "The directory cannot be a workspace",
                "Read `detail`: name another directory, or mend what is in the way.",
            ),
            Self::StrategyNotPossible => (
                "strategy_not_possible",
                422,
                "Sandboxes cannot be made like that here",
                "Leave `strategy` out, or choose one that GET /v1/plans/strategies says works.",
            ),
            Self::PathNotAllowed => (
                "path_not_allowed",
                422,
                "The path cannot be used",
                "Name the file by its path from the root of the workspace.",
            ),
            Self::ServerNotInstalled => (
                "server_not_installed",
                424,
                "The language server is not installed",
                "Install it as `detail` says, and ask again; nothing has to be restarted.",
            ),
            Self::StreamLimitReached => (
                "stream_limit_reached",
                429,
                "Too many streams are open",
                "Close streams that nobody reads, or ask without `Accept: text/event-stream`.",
            ),
            Self::JobsFull => (
                "jobs_full",
                429,
                "Too many jobs wait",
                "Wait until some have ended, or cancel those that nobody needs, and submit it again.",
            ),
            Self::Internal => (
                "internal",
                500,
                "Something broke inside the daemon",
                "Look up the request id in the daemon's log, and report what you find there.",
            ),
            Self::LogFailed => (
                "log_failed",
                500,
                "The log could not be read",
                "Run `tidelock doctor --deep`; the daemon's log says what happened.",
            ),
            Self::BackupFailed => (
                "backup_failed",
                500,
                "The backup could not be written",
                "Make sure that the daemon can write there and that there is room, and try again.",
            ),
            Self::SandboxFailed => (
                "sandbox_failed",
                500,
                "The sandbox could not be used",
                "Make sure that there is room on the disk; the daemon's log says what failed.",
            ),
            Self::BackupNotSupported => (
                "backup_not_supported",
                501,
                "This log is not backed up from here",
                "Use the tools of the database server, or `tidelock export`.",
            ),
            Self::QueryUnsupported => (
                "query_unsupported",
                501,
                "The language server cannot do this",
                "Ask something else, or use another server for the language.",
            ),
            Self::ServerFailed => (
                "server_failed",
                502,
                "The language server has failed",
                "Read `detail` and `tidelock lsp health`, mend it, and run `tidelock lsp restart`.",
            ),
            Self::ServerError => (
                "server_error",
                502,
                "The language server answered with an error",
                "Read `detail`; the server may need other input.",
            ),
            Self::ServerProtocol => (
                "server_protocol",
                502,
                "The language server broke the protocol",
                "Ask again: a new process has taken its place.",
            ),
            Self::NotReady => (
                "not_ready",
                503,
                "The daemon does not take work now",
                "Ask again in a moment; if it is shutting down, start it again.",
            ),
            Self::ShuttingDown => (
                "shutting_down",
                503,
                "The daemon is shutting down",
                "Wait until it has gone, start it again with `tidelock up`, and send the request again.",
            ),
            Self::BreakerLimitReached => (
                "breaker_limit_reached",
                503,
                "The table of breakers is full",
                "Reset breakers that nobody needs, or use fewer names.",
            ),
            Self::LogRefusing => (
                "log_refusing",
                503,
                "The log refuses writes",
                "Mend what `detail` names (room on the disk, rights, the database), and send the request again.",
            ),
            Self::ServerRestarting => (
                "server_restarting",
                503,
                "The language server is starting",
                "Ask again in a moment, or leave `no_wait` out.",
            ),
            Self::ServerNotReady => (
                "server_not_ready",
                503,
                "The language server is still reading the workspace",
                "Ask with `wait_ready`, or ask again in a moment.",
            ),
            Self::ServerTimeout => (
                "server_timeout",
                504,
                "The language server did not answer in time",
                "Ask again with a larger `timeout_ms`, or look at `tidelock lsp health`.",
            ),
            Self::SandboxesFull => (
                "sandboxes_full",
                507,
                "There is no room for another sandbox",
                "Apply or discard plans that are done, run `tidelock plan gc`, or make room on the disk.",
            ),
        };
        Description {
            name,
            status,
            title,
            advice,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTATION: &str = include_str!("../../../docs/errors.md");

    #[test]
    fn the_name_is_what_serde_writes() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn the_documentation_has_a_section_for_each_code_and_no_other() {
        let sections: Vec<(&str, &str)> = DOCUMENTATION
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .map(|heading| heading.split_once(' ').unwrap_or((heading, "")))
            .collect();
        let statuses: Vec<String> = ErrorCode::ALL
            .iter()
            .map(|code| format!("({})", code.status()))
            .collect();
        let expected: Vec<(&str, &str)> = ErrorCode::ALL
            .iter()
            .zip(&statuses)
            .map(|(code, status)| (code.as_str(), status.as_str()))
            .collect();
        assert_eq!(sections, expected);
    }

    #[test]
    fn every_section_says_what_it_means_and_what_to_do() {
        for section in DOCUMENTATION.split("\n## ").skip(1) {
            let name = section.lines().next().unwrap_or_default();
            for part in ["**Meaning.**", "**What to do.**"] {
                assert!(section.contains(part), "the section {name} lacks {part}");
            }
        }
    }
}
