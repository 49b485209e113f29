//! The stable codes of all errors in the HTTP API.
//!
//! A code never changes its meaning. Each one has a section in `docs/errors.md`; a test keeps the two lists
//! equal.

mod descriptions;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The stable name of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The body is not JSON.
    MalformedJson,
    /// The name is empty, too long, or contains control characters.
    InvalidName,
    /// A query parameter or the `Last-Event-ID` header is invalid.
    InvalidQuery,
    /// The request has neither a valid token nor a valid session.
    Unauthorized,
    /// The request comes from a page of another site.
    OriginNotAllowed,
    /// The form was sent without the token that the page includes in it.
    FormTokenInvalid,
    /// A command in a sandbox, or an agent's command, tried to change the user's files.
    ApplyNotAllowed,
    /// Nothing exists at this path.
    NotFound,
    /// No breaker with this name is known.
    BreakerUnknown,
    /// The process doesn't exist, or wasn't started by this daemon.
    ProcessNotFound,
    /// No language server with this name or id is known.
    ServerNotFound,
    /// No language server is configured for this kind of file.
    NoServerForFile,
    /// There is no job with this id.
    JobNotFound,
    /// There is no plan with this id.
    PlanNotFound,
    /// The plan has no changeset with this id.
    ChangesetNotFound,
    /// Nothing exists at this path in the plan's sandbox.
    FileNotFound,
    /// There is no workspace with this id.
    WorkspaceNotFound,
    /// There is no rescued content with this id.
    RescuedNotFound,
    /// There is no session with this id.
    SessionNotFound,
    /// The session has no turn with this id.
    TurnNotFound,
    /// There is no agent with this name.
    AgentNotFound,
    /// The session has no open permission request with this id.
    PermissionNotFound,
    /// There is no strategy with this name.
    StrategyNotFound,
    /// A file in focus doesn't exist.
    FocusNotFound,
    /// The stream isn't quarantined: it doesn't exist, or can be read.
    NotQuarantined,
    /// The path exists but doesn't support this method.
    MethodNotAllowed,
    /// The request didn't arrive in time.
    RequestTimeout,
    /// The write named a generation that is no longer the current one.
    StaleGeneration,
    /// The target of the backup already exists.
    BackupExists,
    /// The language server was stopped by a user.
    ServerStopped,
    /// The job has ended, so the request no longer makes sense.
    JobEnded,
    /// The job hasn't ended yet, so the request doesn't make sense yet.
    JobNotEnded,
    /// The idempotency key belongs to a job, a plan or a turn with other parameters.
    IdempotencyKeyReused,
    /// The caller has no open changeset.
    NoActiveChangeset,
    /// The changeset is full.
    ChangesetClosed,
    /// The request doesn't make sense in the current state of the plan.
    PlanWrongState,
    /// Commands are running in the plan, or it is being applied.
    PlanBusy,
    /// The plan has changes that weren't applied.
    PlanHasWork,
    /// Checks of the plan haven't passed for its current content.
    ChecksNotPassed,
    /// The sandbox of the plan is on another machine.
    PlanElsewhere,
    /// The workspace has open plans.
    WorkspaceInUse,
    /// An apply or undo in the workspace is half-way, and can neither be finished nor rolled back.
    LandingStuck,
    /// The target of rescued content already exists.
    RestoreOccupied,
    /// The daemon's user isn't allowed to change a path in the workspace.
    PathNotPermitted,
    /// A path in the workspace is on a read-only file system.
    PathReadOnly,
    /// A pipe, socket or device is where a file should be.
    SpecialFileInTheWay,
    /// A write to a file in the sandbox was refused.
    FileRefused,
    /// The file has changed since the caller read it.
    FileStale,
    /// A git commit was requested but can't be made.
    GitCommitRefused,
    /// A turn is already running in the session.
    TurnActive,
    /// The turn isn't running, or no turn is.
    TurnNotActive,
    /// The turn is no longer waiting.
    TurnNotQueued,
    /// The machine that runs the turn is still available.
    TurnNotStale,
    /// The session is archived.
    SessionArchived,
    /// A turn of the session is running or waiting.
    SessionInUse,
    /// Other sessions continue from turns of this one.
    SessionHasForks,
    /// The sandbox of the plan was removed by garbage collection.
    SandboxGone,
    /// The workspace was moved or no longer exists.
    WorkspaceGone,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// The media type of the body isn't supported.
    UnsupportedMediaType,
    /// The request was meant for another host.
    HostNotAllowed,
    /// The body is JSON but doesn't have the right shape.
    InvalidRequest,
    /// Something in the request can't be stored, such as a path that isn't UTF-8.
    NotStorable,
    /// The file can't be read as text.
    FileNotUsable,
    /// There is no such line or column in the file.
    PositionInvalid,
    /// A job that this one depends on doesn't exist.
    JobDependencyNotFound,
    /// The plans of one apply don't belong together.
    PlansNotTogether,
    /// Plans would be nested too deeply.
    PlanTooDeep,
    /// The directory can't be a workspace, or can't be read as one.
    WorkspaceUnusable,
    /// The sandbox strategy doesn't work here.
    StrategyNotPossible,
    /// The path isn't valid for a file in a workspace.
    PathNotAllowed,
    /// The prompt, title or script is invalid.
    InvalidPrompt,
    /// The question has neither text nor files.
    ContextEmpty,
    /// The question, or what it asks for, exceeds a limit.
    ContextTooLarge,
    /// A language server for the file is known, but its program isn't installed.
    ServerNotInstalled,
    /// The agent can't be used yet: something is missing.
    AgentNotReady,
    /// The limit for open streams is reached.
    StreamLimitReached,
    /// The limit for waiting jobs is reached.
    JobsFull,
    /// The limit for waiting prompts in the session is reached.
    QueueFull,
    /// An internal error.
    Internal,
    /// The durable log couldn't be read.
    LogFailed,
    /// The stored record of this object can't be read.
    RecordUnreadable,
    /// The copy of the log couldn't be written.
    BackupFailed,
    /// A file in a sandbox or workspace couldn't be read or written.
    SandboxFailed,
    /// Content that the durable log should have is missing or damaged.
    ContentDamaged,
    /// The log is stored by a database server, which has its own tools.
    BackupNotSupported,
    /// The language server doesn't support this.
    QueryUnsupported,
    /// The language server couldn't be started, or crashed too often.
    ServerFailed,
    /// The language server answered with an error.
    ServerError,
    /// The language server violated the protocol.
    ServerProtocol,
    /// The daemon doesn't accept work yet, or no longer does.
    NotReady,
    /// The daemon is shutting down and accepts no new requests.
    ShuttingDown,
    /// The breaker table is full of names that are in use.
    BreakerLimitReached,
    /// The durable log refuses writes.
    LogRefusing,
    /// The language server is starting, and the caller didn't want to wait.
    ServerRestarting,
    /// The language server is still reading the workspace.
    ServerNotReady,
    /// The language server didn't answer in time.
    ServerTimeout,
    /// There is no space for another sandbox.
    SandboxesFull,
    /// The disk is full.
    DiskFull,
}

impl ErrorCode {
    /// Every code, in the order of `docs/errors.md`.
    pub const ALL: [Self; 99] = [
        Self::MalformedJson,
        Self::InvalidName,
        Self::InvalidQuery,
        Self::Unauthorized,
        Self::OriginNotAllowed,
        Self::FormTokenInvalid,
        Self::ApplyNotAllowed,
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
        Self::RescuedNotFound,
        Self::SessionNotFound,
        Self::TurnNotFound,
        Self::AgentNotFound,
        Self::PermissionNotFound,
        Self::StrategyNotFound,
        Self::FocusNotFound,
        Self::NotQuarantined,
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
        Self::LandingStuck,
        Self::RestoreOccupied,
        Self::PathNotPermitted,
        Self::PathReadOnly,
        Self::SpecialFileInTheWay,
        Self::FileRefused,
        Self::FileStale,
        Self::GitCommitRefused,
        Self::TurnActive,
        Self::TurnNotActive,
        Self::TurnNotQueued,
        Self::TurnNotStale,
        Self::SessionArchived,
        Self::SessionInUse,
        Self::SessionHasForks,
        Self::SandboxGone,
        Self::WorkspaceGone,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::HostNotAllowed,
        Self::InvalidRequest,
        Self::NotStorable,
        Self::FileNotUsable,
        Self::PositionInvalid,
        Self::JobDependencyNotFound,
        Self::PlansNotTogether,
        Self::PlanTooDeep,
        Self::WorkspaceUnusable,
        Self::StrategyNotPossible,
        Self::PathNotAllowed,
        Self::InvalidPrompt,
        Self::ContextEmpty,
        Self::ContextTooLarge,
        Self::ServerNotInstalled,
        Self::AgentNotReady,
        Self::StreamLimitReached,
        Self::JobsFull,
        Self::QueueFull,
        Self::Internal,
        Self::LogFailed,
        Self::RecordUnreadable,
        Self::BackupFailed,
        Self::SandboxFailed,
        Self::ContentDamaged,
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
        Self::DiskFull,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.describe().name
    }

    /// The HTTP status of the code.
    #[must_use]
    pub fn status(self) -> u16 {
        self.describe().status
    }

    /// A title for the code.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.describe().title
    }

    /// What to do next, by default.
    #[must_use]
    pub fn advice(self) -> &'static str {
        self.describe().advice
    }

    /// The URL of the documentation section, relative to the daemon.
    #[must_use]
    pub fn reference(self) -> String {
        format!("/docs/errors#{}", self.as_str())
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
