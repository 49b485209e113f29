//! Converts errors of plans and workspaces to problems, and declares the codes that each operation can fail with.

use eventlog::{BlobError, LogError};
use plans::{PlanError, SandboxError};
use protocol::{ErrorCode, PlanId};

use crate::http::consent::ChangeUserFiles;
use crate::http::log_problem::{ReadLog, WriteLog, unreadable};
use crate::http::problem::{Problem, Subject, sentence};
use crate::http::refusals::families;
use crate::plans::CheckError;
use crate::plans::wire::checks_text;

families! {
    List = [RecordUnreadable, SandboxFailed, ShuttingDown] + ReadLog;
    Read = [PlanNotFound] + List;
    ReadChangeset = [ChangesetNotFound] + Read;
    CloseChangeset = [PlanBusy] + ReadChangeset + WriteLog;
    /// The sandbox of a plan is read.
    ReadSandbox = [PlanBusy, PlanElsewhere, SandboxGone, FileRefused] + Read;
    ReadFile = [FileNotFound, PathNotAllowed] + ReadSandbox;
    WriteFiles = [NoActiveChangeset, ChangesetClosed, PlanWrongState, FileStale] + ReadFile + ReadChangeset + WriteLog;
    Change = [PlanWrongState, StaleGeneration] + ReadSandbox + WriteLog;
    Discard = [PlanHasWork] + Change;
    Collect = [] + List + WriteLog;
    /// A workspace is used. An apply or undo that was interrupted in it is finished or undone first.
    UseWorkspace = [WorkspaceUnusable, WorkspaceNotFound, WorkspaceGone, LandingStuck] + List + WriteLog;
    Open = [PlanTooDeep, PlanWrongState, SandboxesFull, StrategyNotPossible, IdempotencyKeyReused]
        + UseWorkspace + ReadSandbox;
    /// Files of the user are written.
    WriteWorkspace = [PathNotPermitted, PathReadOnly, SpecialFileInTheWay, ContentDamaged, DiskFull] + UseWorkspace;
    Land = [] + WriteWorkspace + Change;
    Apply = [ChecksNotPassed, PlansNotTogether, GitCommitRefused] + Land + ChangeUserFiles;
    Undo = [ChangesetNotFound] + Land + ChangeUserFiles;
    FindRescued = [RescuedNotFound] + List;
    Restore = [RestoreOccupied, PathNotAllowed, FileRefused] + FindRescued + WriteWorkspace;
    FindWorkspace = [WorkspaceNotFound] + List + WriteLog;
    ForgetWorkspace = [WorkspaceInUse] + FindWorkspace;
    RepairWorkspace = [] + WriteWorkspace;
}

/// An error that depends on the state of the plan includes the plan.
impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Self {
        match subject(&error) {
            None => without_plan(error),
            Some(id) => without_plan(error).about(Subject::Plan(id)),
        }
    }
}

/// The plan that the caller has to look at before it tries again.
fn subject(error: &PlanError) -> Option<PlanId> {
    match error {
        PlanError::WrongState { plan, .. }
        | PlanError::NotOver { plan, .. }
        | PlanError::AlreadyApplied { plan }
        | PlanError::Busy { plan, .. }
        | PlanError::Stale { plan, .. }
        | PlanError::HasWork { plan, .. }
        | PlanError::HasUncarriedWork { plan, .. }
        | PlanError::CaptureCancelled { plan, .. }
        | PlanError::ChecksNotPassed { plan, .. }
        | PlanError::KeyReused(plan) => Some(*plan),
        _ => None,
    }
}

fn without_plan(error: PlanError) -> Problem {
    let mut detail = sentence(&error.to_string());
    let code = match error {
        PlanError::NotFound(_) => ErrorCode::PlanNotFound,
        PlanError::ChangesetNotFound(_) => ErrorCode::ChangesetNotFound,
        PlanError::NoActiveChangeset => ErrorCode::NoActiveChangeset,
        PlanError::ChangesetClosed(_) => ErrorCode::ChangesetClosed,
        PlanError::WrongState { .. } | PlanError::NotOver { .. } | PlanError::AlreadyApplied { .. } => {
            ErrorCode::PlanWrongState
        }
        PlanError::Busy { .. } | PlanError::CaptureCancelled { .. } => ErrorCode::PlanBusy,
        PlanError::Stale { .. } => ErrorCode::StaleGeneration,
        PlanError::HasWork { .. } | PlanError::HasUncarriedWork { .. } => ErrorCode::PlanHasWork,
        PlanError::ChecksNotPassed { checks, .. } => {
            detail = format!("Not all checks have passed: {}.", checks_text(&checks));
            ErrorCode::ChecksNotPassed
        }
        PlanError::NotTogether => ErrorCode::PlansNotTogether,
        PlanError::NoRoom { .. } => ErrorCode::SandboxesFull,
        PlanError::SandboxGone(_) => ErrorCode::SandboxGone,
        PlanError::Elsewhere { .. } => ErrorCode::PlanElsewhere,
        PlanError::TooDeep { .. } => ErrorCode::PlanTooDeep,
        PlanError::KeyReused(_) => ErrorCode::IdempotencyKeyReused,
        PlanError::BadWorkspace { .. } | PlanError::Base(_) => ErrorCode::WorkspaceUnusable,
        PlanError::WorkspaceNotFound(_) => ErrorCode::WorkspaceNotFound,
        PlanError::WorkspaceGone { .. } => ErrorCode::WorkspaceGone,
        PlanError::WorkspaceInUse { .. } => ErrorCode::WorkspaceInUse,
        PlanError::LandingStuck { .. } => ErrorCode::LandingStuck,
        PlanError::RescuedNotFound(_) => ErrorCode::RescuedNotFound,
        PlanError::RestoreOccupied { .. } => ErrorCode::RestoreOccupied,
        PlanError::NotPermitted { .. } => ErrorCode::PathNotPermitted,
        PlanError::ReadOnly { .. } => ErrorCode::PathReadOnly,
        PlanError::DiskFull { .. } => ErrorCode::DiskFull,
        PlanError::SpecialFile { .. } => ErrorCode::SpecialFileInTheWay,
        PlanError::ContentDamaged { .. } => ErrorCode::ContentDamaged,
        PlanError::BadPath(_) => ErrorCode::PathNotAllowed,
        PlanError::FileRefused { .. } => ErrorCode::FileRefused,
        PlanError::FileNotFound { .. } => ErrorCode::FileNotFound,
        PlanError::FileStale { hash, .. } => {
            detail.push_str(&match hash {
                Some(hash) => format!(" Its hash is {hash} now."),
                None => " There is no file there now.".to_owned(),
            });
            ErrorCode::FileStale
        }
        PlanError::NoGitCommit { .. } => ErrorCode::GitCommitRefused,
        PlanError::Sandbox(SandboxError::NotPossible { .. }) => ErrorCode::StrategyNotPossible,
        // The file and the cause are only for the daemon's log.
        error @ (PlanError::Sandbox(_) | PlanError::Io { .. }) => {
            let detail = "A file of the sandbox or of the workspace could not be read or written.";
            return Problem::new(ErrorCode::SandboxFailed, detail).because(error);
        }
        PlanError::Closing => return shutting_down(),
        PlanError::Blob(BlobError::Log(LogError::Closed)) | PlanError::Log(LogError::Closed) => {
            return shutting_down();
        }
        PlanError::Blob(BlobError::Log(error)) | PlanError::Log(error) => return error.into(),
        PlanError::Blob(error) => return Problem::internal(error),
        PlanError::Unreadable { .. } => return unreadable(&error),
        PlanError::Commit(error) => return error.into(),
    };
    Problem::new(code, detail)
}

impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Plan(error) => error.into(),
            CheckError::Submit(error) => error.into(),
            CheckError::Encode(error) => Self::internal(error),
            CheckError::Closing => shutting_down(),
        }
    }
}

fn shutting_down() -> Problem {
    Problem::new(
        ErrorCode::ShuttingDown,
        "The daemon takes no more changes of plans.",
    )
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use plans::RelPath;
    use protocol::{CheckState, PlanState, RequestId, SandboxStrategy};

    use super::*;

    /// What the caller sees: the code, the status and what happened this time.
    fn told(error: PlanError) -> (ErrorCode, u16, String) {
        let problem = without_plan(error).into_body(RequestId::generate());
        (problem.code, problem.status, problem.detail)
    }

    #[test]
    fn each_error_has_its_code_and_says_what_happened() {
        let id = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let plan: PlanId = id.parse().unwrap();
        let checks = vec![
            ("make test".to_owned(), CheckState::Failed),
            ("make lint".to_owned(), CheckState::Outdated),
        ];
        let secret = || io::Error::other("/secret/path");
        for (error, code, status, detail) in [
            (
                PlanError::NotFound(plan),
                ErrorCode::PlanNotFound,
                404,
                format!("There is no plan {id}."),
            ),
            (
                PlanError::NoActiveChangeset,
                ErrorCode::NoActiveChangeset,
                409,
                "There is no active changeset; start one first.".to_owned(),
            ),
            (
                PlanError::WrongState {
                    plan,
                    state: PlanState::Discarded,
                },
                ErrorCode::PlanWrongState,
                409,
                format!("The plan {id} is discarded; that cannot be done now."),
            ),
            (
                PlanError::Stale { plan, actual: 7 },
                ErrorCode::StaleGeneration,
                409,
                format!("The plan {id} has moved on; it is at version 7 now."),
            ),
            (
                PlanError::ChecksNotPassed { plan, checks },
                ErrorCode::ChecksNotPassed,
                409,
                "Not all checks have passed: `make test` has failed, `make lint` ran before the last change."
                    .to_owned(),
            ),
            (
                PlanError::SandboxGone(plan),
                ErrorCode::SandboxGone,
                410,
                format!("The sandbox of the plan {id} is gone."),
            ),
            (
                PlanError::TooDeep { limit: 8 },
                ErrorCode::PlanTooDeep,
                422,
                "A plan may have at most 8 plans above it.".to_owned(),
            ),
            (
                PlanError::BadWorkspace {
                    root: PathBuf::from("/a"),
                    why: "it is a file".to_owned(),
                },
                ErrorCode::WorkspaceUnusable,
                422,
                "/a cannot be a workspace: it is a file.".to_owned(),
            ),
            (
                PlanError::BadPath(RelPath::from_bytes(b"../a").unwrap_err()),
                ErrorCode::PathNotAllowed,
                422,
                "`../a` cannot be used: it has `.` or `..` in it.".to_owned(),
            ),
            (
                PlanError::FileStale {
                    path: "a".to_owned(),
                    hash: Some("abc".to_owned()),
                },
                ErrorCode::FileStale,
                409,
                "`a` is not what it was. Its hash is abc now.".to_owned(),
            ),
            (
                PlanError::FileStale {
                    path: "a".to_owned(),
                    hash: None,
                },
                ErrorCode::FileStale,
                409,
                "`a` is not what it was. There is no file there now.".to_owned(),
            ),
            (
                PlanError::Sandbox(SandboxError::NotPossible {
                    strategy: SandboxStrategy::Overlay,
                    why: "no namespaces".to_owned(),
                }),
                ErrorCode::StrategyNotPossible,
                422,
                "The strategy overlay does not work here: no namespaces.".to_owned(),
            ),
            (
                PlanError::Io {
                    what: "reading /secret/path".to_owned(),
                    source: secret(),
                },
                ErrorCode::SandboxFailed,
                500,
                "A file of the sandbox or of the workspace could not be read or written.".to_owned(),
            ),
            (
                PlanError::NotPermitted {
                    path: "a/b".to_owned(),
                },
                ErrorCode::PathNotPermitted,
                409,
                "Permission denied: `a/b`.".to_owned(),
            ),
            (
                PlanError::ReadOnly {
                    path: "a/b".to_owned(),
                },
                ErrorCode::PathReadOnly,
                409,
                "`a/b` is on a read-only file system.".to_owned(),
            ),
            (
                PlanError::SpecialFile { path: "a".to_owned() },
                ErrorCode::SpecialFileInTheWay,
                409,
                "`a` is a pipe, a socket or a device, and can be neither merged nor replaced.".to_owned(),
            ),
            (
                PlanError::ContentDamaged {
                    path: "a".to_owned(),
                    why: "it is not there".to_owned(),
                },
                ErrorCode::ContentDamaged,
                500,
                "The stored content of `a` cannot be read: it is not there.".to_owned(),
            ),
            (
                PlanError::DiskFull { path: "a".to_owned() },
                ErrorCode::DiskFull,
                507,
                "No space is left on the disk, or the quota is used up; it was needed for `a`.".to_owned(),
            ),
            (
                PlanError::LandingStuck {
                    root: PathBuf::from("/a"),
                    why: "permission denied: `b`".to_owned(),
                },
                ErrorCode::LandingStuck,
                409,
                "An apply or undo of /a is half-way and cannot be brought to an end: permission denied: `b`."
                    .to_owned(),
            ),
            (
                PlanError::Closing,
                ErrorCode::ShuttingDown,
                503,
                "The daemon takes no more changes of plans.".to_owned(),
            ),
        ] {
            assert_eq!(told(error), (code, status, detail));
        }
    }
}
