//! What can go wrong with a plan.

use std::io;
use std::path::PathBuf;

use eventlog::{BlobError, CommitError, LogError};
use protocol::{ChangesetId, CheckState, HomeId, PlanId, PlanState, RescuedId, WorkspaceId};

use crate::path::BadPath;
use crate::sandbox::SandboxError;

/// Something was not done, and why.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no plan of this id.
    #[error("there is no plan {0}")]
    NotFound(PlanId),
    /// There is no changeset of this id in the plan.
    #[error("there is no changeset {0} in this plan")]
    ChangesetNotFound(ChangesetId),
    /// The caller has no changeset that is open.
    #[error("there is no active changeset; start one first")]
    NoActiveChangeset,
    /// The changeset takes no more.
    #[error("the changeset {0} is closed")]
    ChangesetClosed(ChangesetId),
    /// It makes no sense in the state that the plan is in.
    #[error("the plan {plan} is {}; that cannot be done now", state.as_str())]
    WrongState {
        /// The plan.
        plan: PlanId,
        /// What it is.
        state: PlanState,
    },
    /// It is in the workspace already.
    #[error(
        "the plan {plan} is applied, so there is nothing to discard; take it back with `tidelock plan undo {plan}`"
    )]
    AlreadyApplied {
        /// The plan.
        plan: PlanId,
    },
    /// Only a plan that is over can be forgotten.
    #[error("the plan {plan} is {}; apply or discard it before you forget it", state.as_str())]
    NotOver {
        /// The plan.
        plan: PlanId,
        /// What it is.
        state: PlanState,
    },
    /// Commands run in it, or it is being applied.
    #[error("the plan {plan} is in use: {by}")]
    Busy {
        /// The plan.
        plan: PlanId,
        /// By what.
        by: String,
    },
    /// What is in the sandbox was being recorded, and that was called off.
    #[error("recording what is in the sandbox of {plan} was called off: {why}")]
    CaptureCancelled {
        /// The plan.
        plan: PlanId,
        /// By what.
        why: String,
    },
    /// The plan is not at the version that the caller saw.
    #[error("the plan {plan} has moved on; it is at version {actual} now")]
    Stale {
        /// The plan.
        plan: PlanId,
        /// Its version.
        actual: u64,
    },
    /// The plan has work in it that was not applied.
    #[error("the plan {plan} has {files} changed files that are not applied")]
    HasWork {
        /// The plan.
        plan: PlanId,
        /// How many files.
        files: u64,
    },
    /// The plan has work in it that it does not carry.
    #[error("the plan {plan} has work in its sandbox that it does not carry: {what}")]
    HasUncarriedWork {
        /// The plan.
        plan: PlanId,
        /// What it is, in sentences.
        what: String,
    },
    /// Checks have not passed.
    #[error("{} of the plan's checks have not passed", checks.len())]
    ChecksNotPassed {
        /// The plan.
        plan: PlanId,
        /// Which, and what became of each.
        checks: Vec<(String, CheckState)>,
    },
    /// The plans of one apply do not belong together.
    #[error("the plans are not of one workspace or one parent")]
    NotTogether,
    /// There is no room for another sandbox.
    #[error("there is no room for another sandbox: {why}")]
    NoRoom {
        /// Why not.
        why: String,
    },
    /// Its sandbox was collected.
    #[error("the sandbox of the plan {0} is gone")]
    SandboxGone(PlanId),
    /// Its sandbox is on another machine.
    #[error("the plan {plan} belongs to another daemon, {home}")]
    Elsewhere {
        /// The plan.
        plan: PlanId,
        /// The home of that daemon.
        home: HomeId,
    },
    /// Plans would be nested too deeply.
    #[error("a plan may have at most {limit} plans above it")]
    TooDeep {
        /// How many.
        limit: u16,
    },
    /// The idempotency key belongs to a plan that was asked for in other words.
    #[error("the idempotency key belongs to the plan {0}, which is another one")]
    KeyReused(PlanId),
    /// A directory cannot be a workspace.
    #[error("{} cannot be a workspace: {why}", root.display())]
    BadWorkspace {
        /// The directory.
        root: PathBuf,
        /// What is in the way.
        why: String,
    },
    /// There is no workspace of this id.
    #[error("there is no workspace {0}")]
    WorkspaceNotFound(WorkspaceId),
    /// The workspace has moved or vanished.
    #[error("the workspace {} is not there: {why}", root.display())]
    WorkspaceGone {
        /// Where it was.
        root: PathBuf,
        /// What is there.
        why: String,
    },
    /// An apply or undo of the workspace is half-way, and can neither be finished nor taken back.
    #[error("an apply or undo of {} is half-way and cannot be brought to an end: {why}", root.display())]
    LandingStuck {
        /// The workspace.
        root: PathBuf,
        /// What is in the way.
        why: String,
    },
    /// The user that the daemon runs as may not change a path.
    #[error("permission denied: `{path}`")]
    NotPermitted {
        /// The path.
        path: String,
    },
    /// A path is on a file system that cannot be written.
    #[error("`{path}` is on a read-only file system")]
    ReadOnly {
        /// The path.
        path: String,
    },
    /// There is no room left.
    #[error("no space is left on the disk, or the quota is used up; it was needed for `{path}`")]
    DiskFull {
        /// For which path.
        path: String,
    },
    /// A pipe, a socket or a device is where a file is to go.
    #[error("`{path}` is a pipe, a socket or a device, and can be neither merged nor replaced")]
    SpecialFile {
        /// The path.
        path: String,
    },
    /// A content that the log should have is missing or damaged.
    #[error("the stored content of `{path}` cannot be read: {why}")]
    ContentDamaged {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no rescued content of this id.
    #[error("there is no rescued content {0}")]
    RescuedNotFound(RescuedId),
    /// Something is where rescued content is to go.
    #[error("`{path}` is occupied; nothing was restored")]
    RestoreOccupied {
        /// The path.
        path: String,
    },
    /// The workspace has plans that are not over.
    #[error("the workspace has {plans} plans that are open or sealed")]
    WorkspaceInUse {
        /// How many.
        plans: u64,
    },
    /// A path that cannot be used.
    #[error(transparent)]
    BadPath(#[from] BadPath),
    /// A write to a file of the sandbox was refused.
    #[error("`{path}` was not changed: {why}")]
    FileRefused {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
    /// There is nothing at a path of the sandbox.
    #[error("there is nothing at `{path}`")]
    FileNotFound {
        /// The path.
        path: String,
    },
    /// The file is not what the caller saw.
    #[error("`{path}` is not what it was")]
    FileStale {
        /// The path.
        path: String,
        /// What it is now; nothing if there is none.
        hash: Option<String>,
    },
    /// A git commit was wanted and cannot be made.
    #[error("no git commit can be made: {why}")]
    NoGitCommit {
        /// Why.
        why: String,
    },
    /// The sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The base.
    #[error("the workspace cannot be read: {0}")]
    Base(String),
    /// A file.
    #[error("{what} failed")]
    Io {
        /// What was being done.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Closing,
    /// A content of a plan.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// What the log has of it cannot be read.
    #[error("`{stream}` cannot be read")]
    Unreadable {
        /// The stream.
        stream: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The log refused.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl PlanError {
    /// Whether the database is away, or has just come back: the same may go well a little later.
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

    /// Whether what was asked for may have been done all the same, because the answer of the log was lost.
    #[must_use]
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Log(error) => error.may_be_made(),
            Self::Commit(error) => error.may_be_made(),
            _ => false,
        }
    }
}
