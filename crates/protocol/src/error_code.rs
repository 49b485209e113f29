//! The stable names of everything that can go wrong over HTTP.
//!
//! A name is never given another meaning. Each one has a section in `docs/errors.md`; a test keeps the two
//! lists equal.

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
    /// A command in a sandbox, or an agent's, wants to change the user's files.
    ApplyNotAllowed,
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
    /// There is no rescued content of this id.
    RescuedNotFound,
    /// There is no session of this id.
    SessionNotFound,
    /// There is no turn of this id in the session.
    TurnNotFound,
    /// There is no agent of this name.
    AgentNotFound,
    /// No question of this id is open in the session.
    PermissionNotFound,
    /// There is no strategy of this name.
    StrategyNotFound,
    /// A file that a question is about is not there.
    FocusNotFound,
    /// The stream is not quarantined: it is not there, or can be read.
    NotQuarantined,
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
    /// The idempotency key belongs to a job, a plan or a turn that was asked for in other words.
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
    /// An apply or undo of the workspace is half-way, and can neither be finished nor taken back.
    LandingStuck,
    /// Something is where rescued content is to go.
    RestoreOccupied,
    /// The user of the daemon may not change a path of the workspace.
    PathNotPermitted,
    /// A path of the workspace is on a read-only file system.
    PathReadOnly,
    /// A pipe, a socket or a device is where a file is to go.
    SpecialFileInTheWay,
    /// A write to a file of the sandbox was refused.
    FileRefused,
    /// The file is not what the caller saw.
    FileStale,
    /// A git commit was wanted and cannot be made.
    GitCommitRefused,
    /// A turn runs in the session already.
    TurnActive,
    /// The turn does not run, or no turn does.
    TurnNotActive,
    /// The turn does not wait any more.
    TurnNotQueued,
    /// Whoever runs the turn is there.
    TurnNotStale,
    /// The session was put away.
    SessionArchived,
    /// A turn of the session runs or waits.
    SessionInUse,
    /// Other sessions go on from turns of this one.
    SessionHasForks,
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
    /// Something in the request cannot be stored, such as a path that is not UTF-8.
    NotStorable,
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
    /// It cannot be a prompt, a title, or a script.
    InvalidPrompt,
    /// A question has neither words nor files.
    ContextEmpty,
    /// A question, or what it asks for, is larger than the limit.
    ContextTooLarge,
    /// A language server for the file is known and its program is not on this machine.
    ServerNotInstalled,
    /// The agent cannot be asked yet: something is missing.
    AgentNotReady,
    /// As many streams are open as the daemon allows.
    StreamLimitReached,
    /// As many jobs wait as the daemon allows.
    JobsFull,
    /// As many prompts wait in the session as the daemon allows.
    QueueFull,
    /// Something broke inside the daemon.
    Internal,
    /// The durable log could not be read.
    LogFailed,
    /// What the log has of this one thing cannot be read.
    RecordUnreadable,
    /// The copy of the log could not be written.
    BackupFailed,
    /// A file of a sandbox or of a workspace could not be read or written.
    SandboxFailed,
    /// A content that the durable log should have is missing or damaged.
    ContentDamaged,
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
    /// No space is left on the disk.
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
