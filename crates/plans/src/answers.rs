//! The requests to the service, and its answers.

use std::time::Duration;

use eventlog::Sequence;
use protocol::{ChangesetId, CommitPlans, OutcomeKind, PlanId, PlanState, RescuedId, WorkspaceId};

use crate::{Actor, Conflict, Entrance, Entry, ManifestId, Plan, Recorded, RelPath, Rescued, StuckLanding};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PlanQuery {
    pub workspace: Option<WorkspaceId>,
    pub parent: Option<PlanId>,
    /// Return only plans in one of these states; empty means all states.
    pub states: Vec<PlanState>,
    pub before: Option<PlanId>,
    pub limit: u32,
}

#[derive(Clone, Debug)]
pub struct Opened {
    pub plan: Plan,
    /// Whether an earlier request with the same idempotency key already opened it.
    pub known: bool,
}

/// Whether to carry something out or only report what would happen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Run {
    #[default]
    Real,
    Dry,
}

/// What happens to work that wasn't applied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unapplied {
    /// Keep it: the plan isn't discarded.
    #[default]
    Keep,
    GiveUp,
}

#[derive(Clone, Debug)]
pub struct ApplyRequest {
    pub plans: Vec<PlanId>,
    /// The fingerprint of each plan that the caller reviewed, in the same order. The request is refused if a plan has
    /// changed since. Empty if the caller hasn't reviewed them.
    pub seen: Vec<ManifestId>,
    pub by: Actor,
    pub run: Run,
    pub commit: Option<CommitPlans>,
}

#[derive(Clone, Debug)]
pub struct UndoRequest {
    pub plan: PlanId,
    pub changeset: Option<ChangesetId>,
    /// The version that the caller saw. The request is refused if it has changed since.
    pub seen: Option<u64>,
    pub by: Actor,
    pub run: Run,
}

/// The result of an apply, an undo or a refresh.
#[derive(Clone, Debug)]
pub struct LandingOutcome {
    pub kind: OutcomeKind,
    pub plans: Vec<Plan>,
    /// The paths that were changed, or would be, in order.
    pub paths: Vec<OutcomePath>,
    pub conflicts: Vec<Conflict>,
    pub commit: Option<String>,
    /// Why the requested git commit failed, after everything was applied.
    pub commit_failed: Option<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

impl LandingOutcome {
    pub(crate) fn new(kind: OutcomeKind, plans: Vec<Plan>) -> Self {
        Self {
            kind,
            plans,
            paths: Vec::new(),
            conflicts: Vec::new(),
            commit: None,
            commit_failed: None,
            notes: Vec::new(),
        }
    }
}

/// What to do with an apply or undo that was interrupted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repair {
    Recover,
    /// Recover it; if it can be neither finished nor rolled back, set it aside and keep everything it holds.
    Abort,
}

#[derive(Clone, Debug)]
pub struct Repaired {
    pub end: RepairEnd,
    pub rescued: Vec<Rescued>,
    /// The paths that keep the landing's changes, if it was set aside.
    pub changed: Vec<RelPath>,
}

/// The result of repairing an interrupted landing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RepairEnd {
    Nothing,
    Finished,
    TakenBack,
    Stuck(StuckLanding),
    SetAside(StuckLanding),
}

/// A request to restore rescued content to the workspace.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    pub id: RescuedId,
    /// The destination; defaults to the original path.
    pub to: Option<RelPath>,
    pub occupied: Occupied,
}

/// What happens to a file that is already at the destination of rescued content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occupied {
    Refuse,
    Swap,
}

/// Rescued content that was restored.
#[derive(Clone, Debug)]
pub struct Restored {
    pub path: RelPath,
    pub replaced: Option<Rescued>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutcomePath {
    pub path: RelPath,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
    /// Whether the other side had changed it too, and both changes were merged.
    pub merged: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileOperation {
    /// Writes a file and creates missing parent directories.
    Write {
        path: RelPath,
        content: Vec<u8>,
        executable: Option<bool>,
        /// What the caller saw there. The write is refused if it has changed since.
        seen: Option<SeenFile>,
    },
    /// Replaces a text that must occur exactly once.
    Edit {
        path: RelPath,
        find: String,
        replace: String,
    },
    /// Deletes a file, a symlink, or a directory with everything in it.
    Delete {
        path: RelPath,
    },
    /// Moves a file or directory to another path, which must be free.
    Rename {
        from: RelPath,
        path: RelPath,
    },
    Symlink {
        path: RelPath,
        /// Where it points. It must not lead out of the workspace.
        target: String,
    },
    Chmod {
        path: RelPath,
        executable: bool,
    },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SeenFile {
    Nothing,
    File(eventlog::BlobId),
}

/// A request to write to a sandbox.
#[derive(Clone, Debug)]
pub struct ChangeFiles {
    pub by: Actor,
    /// The changeset to record them in. Defaults to the caller's current one, or a new one if the caller has none.
    pub changeset: Option<ChangesetId>,
    pub tool: String,
    pub reason: String,
    /// The operations, performed in this order.
    pub operations: Vec<FileOperation>,
}

/// The result of writes to a sandbox.
#[derive(Debug)]
pub struct FilesChanged {
    pub changeset: ChangesetId,
    pub changes: Vec<Recorded>,
    /// Why it stopped before the last operation. Everything in `changes` was still done and recorded.
    pub stopped_by: Option<crate::error::PlanError>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileFound {
    File {
        entry: Entry,
        content: Vec<u8>,
    },
    Symlink {
        target: Vec<u8>,
    },
    Directory {
        /// The names in it; directories end with a slash.
        names: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GcPolicy {
    /// Remove sandboxes of plans that ended longer ago than this.
    pub older_than: Duration,
    pub run: Run,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Forgotten {
    pub plans: u64,
    /// How many bytes of disk space were freed.
    pub bytes: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moment {
    pub sequence: Sequence,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// A one-line description; may be empty.
    pub text: String,
}

/// Permission to run a command in a sandbox. Call [`Plans::leave`] once none of its processes are running. If the
/// daemon dies first, the next one does that.
#[derive(Clone, Debug)]
pub struct CommandRun {
    pub id: String,
    pub plan: PlanId,
    pub entrance: Entrance,
}
