//! The requests to the service, and its answers.

use std::time::Duration;

use eventlog::Sequence;
use protocol::{ChangesetId, CommitPlans, OutcomeKind, PlanId, PlanState, RescuedId, WorkspaceId};

use crate::{Actor, Conflict, Entrance, Entry, ManifestId, Plan, Recorded, RelPath, Rescued, StuckLanding};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PlanQuery {
    pub workspace: Option<WorkspaceId>,
    pub parent: Option<PlanId>,
    /// Only in one of these states; all if it is empty.
    pub states: Vec<PlanState>,
    pub before: Option<PlanId>,
    pub limit: u32,
}

#[derive(Clone, Debug)]
pub struct Opened {
    pub plan: Plan,
    /// Whether it was opened before, with the same idempotency key.
    pub known: bool,
}

/// Whether something is to be done, or only to be told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Run {
    #[default]
    Real,
    Dry,
}

/// What becomes of work that was not applied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unapplied {
    /// It is kept: the plan is not given up.
    #[default]
    Keep,
    GiveUp,
}

#[derive(Clone, Debug)]
pub struct ApplyRequest {
    pub plans: Vec<PlanId>,
    /// What the caller saw in each, by its fingerprint, in the same order: refused if there is something else in it now.
    /// Empty if the caller has not looked.
    pub seen: Vec<ManifestId>,
    pub by: Actor,
    pub run: Run,
    pub commit: Option<CommitPlans>,
}

#[derive(Clone, Debug)]
pub struct UndoRequest {
    pub plan: PlanId,
    pub changeset: Option<ChangesetId>,
    /// The version that the caller saw: refused if it is another one now.
    pub seen: Option<u64>,
    pub by: Actor,
    pub run: Run,
}

/// What an apply, an undo or a refresh came to.
#[derive(Clone, Debug)]
pub struct LandingOutcome {
    pub kind: OutcomeKind,
    pub plans: Vec<Plan>,
    /// The paths that were or would be changed, in order.
    pub paths: Vec<OutcomePath>,
    pub conflicts: Vec<Conflict>,
    pub commit: Option<String>,
    /// Why the git commit that was wanted could not be made, after everything was applied.
    pub commit_failed: Option<String>,
    /// What a person should know beside that.
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

/// What to do with an apply or undo that was left halfway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repair {
    Recover,
    /// The same; if neither is possible, set it aside, and keep everything that it holds.
    Abort,
}

#[derive(Clone, Debug)]
pub struct Repaired {
    pub end: RepairEnd,
    pub rescued: Vec<Rescued>,
    /// The paths that stay as the landing wanted them, if it was set aside.
    pub changed: Vec<RelPath>,
}

/// What became of a landing that was left halfway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RepairEnd {
    Nothing,
    Finished,
    TakenBack,
    Stuck(StuckLanding),
    SetAside(StuckLanding),
}

/// A piece of rescued content is to go back to the workspace.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    pub id: RescuedId,
    /// Where it goes; to the path that it belongs to if it is not given.
    pub to: Option<RelPath>,
    pub occupied: Occupied,
}

/// What becomes of something that is where rescued content is to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occupied {
    Refuse,
    Swap,
}

/// Rescued content that is back.
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
    /// Whether the other side had changed it too and both were merged.
    pub merged: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileOperation {
    /// Writes a file; directories on the way are made.
    Write {
        path: RelPath,
        content: Vec<u8>,
        executable: Option<bool>,
        /// What the caller saw there: refused if it is something else now.
        seen: Option<SeenFile>,
    },
    /// Replaces a text that must occur exactly once.
    Edit {
        path: RelPath,
        find: String,
        replace: String,
    },
    /// Deletes a file, a symlink, or a directory with all that is in it.
    Delete {
        path: RelPath,
    },
    /// Gives a file or a directory another path. Nothing may be there.
    Rename {
        from: RelPath,
        path: RelPath,
    },
    Symlink {
        path: RelPath,
        /// Where it points. It may not lead out of the workspace.
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

/// Writes to a sandbox that are wanted.
#[derive(Clone, Debug)]
pub struct ChangeFiles {
    pub by: Actor,
    /// The changeset that they go to. Without it, the caller's current one; if there is none, one is made for them.
    pub changeset: Option<ChangesetId>,
    pub tool: String,
    pub reason: String,
    /// What to do, in this order.
    pub operations: Vec<FileOperation>,
}

/// What became of writes to a sandbox.
#[derive(Debug)]
pub struct FilesChanged {
    pub changeset: ChangesetId,
    pub changes: Vec<Recorded>,
    /// Why it ended before the last one. What is in `changes` was done and recorded all the same.
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
        /// What is in it; directories have a slash at the end.
        names: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GcPolicy {
    /// Sandboxes of plans that were over for longer than this.
    pub older_than: Duration,
    pub run: Run,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Forgotten {
    pub plans: u64,
    /// How many bytes of the disk that freed.
    pub bytes: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moment {
    pub sequence: Sequence,
    /// When it was, in milliseconds since 1970.
    pub at_ms: i64,
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
}

/// A command may run in a sandbox. It must be followed by [`Plans::leave`] when nothing of it runs any more; if the
/// daemon dies before, the next one does that.
#[derive(Clone, Debug)]
pub struct CommandRun {
    pub id: String,
    pub plan: PlanId,
    pub entrance: Entrance,
}
