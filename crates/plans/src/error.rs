//! What can go wrong with a plan.

use std::io;
use std::path::PathBuf;

use eventlog::{BadName, BlobError, CommitError, LogError, MaybeConflict, ReadError, Unreadable};
use protocol::{ChangesetId, CheckState, HomeId, PlanId, PlanState, RescuedId, WorkspaceId};

use crate::{BadPath, SandboxError};

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("there is no plan {0}")]
    NotFound(PlanId),
    #[error("there is no changeset {0} in this plan")]
    ChangesetNotFound(ChangesetId),
    #[error("there is no active changeset; start one first")]
    NoActiveChangeset,
    #[error("the changeset {0} is closed")]
    ChangesetClosed(ChangesetId),
    #[error("the plan {plan} is {}; that cannot be done now", state.as_str())]
    WrongState { plan: PlanId, state: PlanState },
    #[error(
        "the plan {plan} is applied, so there is nothing to discard; take it back with `tidelock plan undo {plan}`"
    )]
    AlreadyApplied { plan: PlanId },
    #[error("the plan {plan} is {}; apply or discard it before you forget it", state.as_str())]
    NotOver { plan: PlanId, state: PlanState },
    #[error("the plan {plan} is in use: {by}")]
    Busy { plan: PlanId, by: String },
    #[error("recording what is in the sandbox of {plan} was called off: {why}")]
    CaptureCancelled { plan: PlanId, why: String },
    #[error("the plan {plan} has moved on; it is at version {actual} now")]
    Stale { plan: PlanId, actual: u64 },
    #[error("the plan {plan} has {files} changed files that are not applied")]
    HasWork { plan: PlanId, files: u64 },
    #[error("the plan {plan} has work in its sandbox that it does not carry: {what}")]
    HasUncarriedWork { plan: PlanId, what: String },
    #[error("{} of the plan's checks have not passed", checks.len())]
    ChecksNotPassed {
        plan: PlanId,
        checks: Vec<(String, CheckState)>,
    },
    #[error("the plans are not of one workspace or one parent")]
    NotTogether,
    #[error("there is no room for another sandbox: {why}")]
    NoRoom { why: String },
    #[error("the sandbox of the plan {0} is gone")]
    SandboxGone(PlanId),
    #[error("the plan {plan} belongs to another daemon, {home}")]
    Elsewhere { plan: PlanId, home: HomeId },
    #[error("a plan may have at most {limit} plans above it")]
    TooDeep { limit: u16 },
    #[error("the idempotency key belongs to the plan {0}, which is another one")]
    KeyReused(PlanId),
    #[error("{} cannot be a workspace: {why}", root.display())]
    BadWorkspace { root: PathBuf, why: String },
    #[error("there is no workspace {0}")]
    WorkspaceNotFound(WorkspaceId),
    #[error("the workspace {} is not there: {why}", root.display())]
    WorkspaceGone { root: PathBuf, why: String },
    #[error("an apply or undo of {} is half-way and cannot be brought to an end: {why}", root.display())]
    LandingStuck { root: PathBuf, why: String },
    #[error("permission denied: `{path}`")]
    NotPermitted { path: String },
    #[error("`{path}` is on a read-only file system")]
    ReadOnly { path: String },
    #[error("no space is left on the disk, or the quota is used up; it was needed for `{path}`")]
    DiskFull { path: String },
    #[error("`{path}` is a pipe, a socket or a device, and can be neither merged nor replaced")]
    SpecialFile { path: String },
    #[error("the stored content of `{path}` cannot be read: {why}")]
    ContentDamaged { path: String, why: String },
    #[error("there is no rescued content {0}")]
    RescuedNotFound(RescuedId),
    #[error("`{path}` is occupied; nothing was restored")]
    RestoreOccupied { path: String },
    #[error("the workspace has {plans} plans that are open or sealed")]
    WorkspaceInUse { plans: u64 },
    #[error(transparent)]
    BadPath(#[from] BadPath),
    #[error("`{path}` was not changed: {why}")]
    FileRefused { path: String, why: String },
    #[error("there is nothing at `{path}`")]
    FileNotFound { path: String },
    #[error("`{path}` is not what it was")]
    FileStale { path: String, hash: Option<String> },
    #[error("no git commit can be made: {why}")]
    NoGitCommit { why: String },
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("the workspace cannot be read: {0}")]
    Base(String),
    #[error("{what} failed")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error("the daemon is stopping")]
    Closing,
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("`{stream}` cannot be read")]
    Unreadable {
        stream: String,
        source: serde_json::Error,
    },
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Log(#[from] LogError),
}

impl PlanError {
    /// An I/O error, with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// The plan kept changing, so every attempt lost the race.
    pub(crate) fn moving(plan: PlanId) -> Self {
        let by = "it is being changed by somebody else all the time".to_owned();
        Self::Busy { plan, by }
    }

    /// Whether the database is down, or has just come back: a retry may succeed a little later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Log(error) | Self::Commit(CommitError::Log(error)) | Self::Blob(BlobError::Log(error)) => {
                error.is_outage()
            }
            Self::Blob(BlobError::UploadLost) => true,
            _ => false,
        }
    }

    /// Whether the request may have been carried out anyway, because the log's answer was lost.
    #[must_use]
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Log(error) => error.may_be_made(),
            Self::Commit(error) => error.may_be_made(),
            _ => false,
        }
    }
}

impl MaybeConflict for PlanError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Commit(CommitError::Conflict { .. }))
    }
}

impl From<BadName> for PlanError {
    fn from(bad: BadName) -> Self {
        Self::Commit(bad.into())
    }
}

impl From<Unreadable> for PlanError {
    fn from(Unreadable { stream, source }: Unreadable) -> Self {
        Self::Unreadable {
            stream: stream.to_string(),
            source,
        }
    }
}

impl From<ReadError> for PlanError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable(unreadable) => unreadable.into(),
            ReadError::Log(error) => error.into(),
        }
    }
}
