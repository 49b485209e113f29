//! What is asked of the service, and what it answers.

use std::time::Duration;

use eventlog::Sequence;
use protocol::{ChangesetId, CommitPlans, OutcomeKind, PlanId, PlanState, RescuedId, WorkspaceId};

use crate::entry::Entry;
use crate::manifest::ManifestId;
use crate::merge::Conflict;
use crate::path::RelPath;
use crate::plan::{Actor, Plan, Recorded};
use crate::rescued::Rescued;
use crate::sandbox::Entrance;
use crate::workspace::StuckLanding;

/// Which plans are wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PlanQuery {
    /// Only of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Only children of this plan.
    pub parent: Option<PlanId>,
    /// Only in one of these states; all if it is empty.
    pub states: Vec<PlanState>,
    /// Only those that were opened before this one.
    pub before: Option<PlanId>,
    /// At most so many.
    pub limit: u32,
}

/// A plan that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The plan.
    pub plan: Plan,
    /// Whether it was opened before, with the same idempotency key.
    pub known: bool,
}

/// Whether something is to be done, or only to be told.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Run {
    /// Do it.
    #[default]
    Real,
    /// Tell what would happen.
    Dry,
}

/// What becomes of work that was not applied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unapplied {
    /// It is kept: the plan is not given up.
    #[default]
    Keep,
    /// It is given up.
    GiveUp,
}

/// An apply that is wanted.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// The plans: all of them or none.
    pub plans: Vec<PlanId>,
    /// What the caller saw in each, by its fingerprint, in the same order: refused if there is something else in it now.
    /// Empty if the caller has not looked.
    pub seen: Vec<ManifestId>,
    /// Who wants it.
    pub by: Actor,
    /// Whether to do it.
    pub run: Run,
    /// Also make a git commit of just these paths.
    pub commit: Option<CommitPlans>,
}

/// An undo that is wanted.
#[derive(Clone, Debug)]
pub struct UndoRequest {
    /// The plan.
    pub plan: PlanId,
    /// Only this changeset of it.
    pub changeset: Option<ChangesetId>,
    /// The version that the caller saw: refused if it is another one now.
    pub seen: Option<u64>,
    /// Who wants it.
    pub by: Actor,
    /// Whether to do it.
    pub run: Run,
}

/// What an apply, an undo or a refresh came to.
#[derive(Clone, Debug)]
pub struct LandingOutcome {
    /// What became of it.
    pub kind: OutcomeKind,
    /// The plans, as they are now.
    pub plans: Vec<Plan>,
    /// The paths that were or would be changed, in order.
    pub paths: Vec<OutcomePath>,
    /// What is in the way.
    pub conflicts: Vec<Conflict>,
    /// The git commit that was made.
    pub commit: Option<String>,
    /// Why the git commit that was wanted could not be made, after everything was applied.
    pub commit_failed: Option<String>,
    /// What a person should know beside that.
    pub notes: Vec<String>,
}

/// What to do with an apply or undo that was left half-way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repair {
    /// Finish it or take it back.
    Recover,
    /// The same; if neither is possible, set it aside, and keep everything that it holds.
    Abort,
}

/// What a repair came to.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// What became of the landing.
    pub end: RepairEnd,
    /// What it had to keep.
    pub rescued: Vec<Rescued>,
    /// The paths that stay as the landing wanted them, if it was set aside.
    pub changed: Vec<RelPath>,
}

/// What became of a landing that was left half-way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RepairEnd {
    /// There was none.
    Nothing,
    /// It was finished.
    Finished,
    /// It was taken back.
    TakenBack,
    /// It is still half-way.
    Stuck(StuckLanding),
    /// It was set aside.
    SetAside(StuckLanding),
}

/// A piece of rescued content is to go back to the workspace.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// The piece.
    pub id: RescuedId,
    /// Where it goes; to the path that it belongs to if it is not given.
    pub to: Option<RelPath>,
    /// What becomes of something that is there.
    pub occupied: Occupied,
}

/// What becomes of something that is where rescued content is to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occupied {
    /// It stays, and nothing is restored.
    Refuse,
    /// It is rescued in turn.
    Swap,
}

/// Rescued content that is back.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Where it is.
    pub path: RelPath,
    /// What was there before, which is rescued now.
    pub replaced: Option<Rescued>,
}

/// A path that was or would be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutcomePath {
    /// The path.
    pub path: RelPath,
    /// What was there.
    pub before: Option<Entry>,
    /// What is there now.
    pub after: Option<Entry>,
    /// Whether the other side had changed it too and both were merged.
    pub merged: bool,
}

/// A write to a sandbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileOperation {
    /// Writes a file; directories on the way are made.
    Write {
        /// The path.
        path: RelPath,
        /// The content.
        content: Vec<u8>,
        /// Whether it can be executed; as it is, or not for a new one, if it is not given.
        executable: Option<bool>,
        /// What the caller saw there: refused if it is something else now.
        seen: Option<SeenFile>,
    },
    /// Replaces a text that must occur exactly once.
    Edit {
        /// The path.
        path: RelPath,
        /// The text.
        find: String,
        /// What takes its place.
        replace: String,
    },
    /// Deletes a file, a symlink, or a directory with all that is in it.
    Delete {
        /// The path.
        path: RelPath,
    },
    /// Gives a file or a directory another path. Nothing may be there.
    Rename {
        /// The old path.
        from: RelPath,
        /// The new path.
        path: RelPath,
    },
    /// Makes a symlink, or points one elsewhere.
    Symlink {
        /// The path.
        path: RelPath,
        /// Where it points. It may not lead out of the workspace.
        target: String,
    },
    /// Lets a file be executed, or not.
    Chmod {
        /// The path.
        path: RelPath,
        /// Whether it can be.
        executable: bool,
    },
}

/// What somebody saw at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SeenFile {
    /// Nothing.
    Nothing,
    /// A file with this hash.
    File(eventlog::BlobId),
}

/// Writes to a sandbox that are wanted.
#[derive(Clone, Debug)]
pub struct ChangeFiles {
    /// Who wants them.
    pub by: Actor,
    /// The changeset that they go to. Without it, the caller's current one; if there is none, one is made for them.
    pub changeset: Option<ChangesetId>,
    /// With what they are made.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// What to do, in this order.
    pub operations: Vec<FileOperation>,
}

/// What became of writes to a sandbox.
#[derive(Debug)]
pub struct FilesChanged {
    /// The changeset that they went to.
    pub changeset: ChangesetId,
    /// What was recorded.
    pub changes: Vec<Recorded>,
    /// Why it ended before the last one. What is in `changes` was done and recorded all the same.
    pub stopped_by: Option<crate::error::PlanError>,
}

/// What is at a path of a sandbox.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileFound {
    /// A file.
    File {
        /// What it is.
        entry: Entry,
        /// Its content.
        content: Vec<u8>,
    },
    /// A symlink.
    Symlink {
        /// Where it points.
        target: Vec<u8>,
    },
    /// A directory.
    Directory {
        /// What is in it; directories have a slash at the end.
        names: Vec<String>,
    },
}

/// What may be collected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GcPolicy {
    /// Sandboxes of plans that were over for longer than this.
    pub older_than: Duration,
    /// Whether to do it.
    pub run: Run,
}

/// What was forgotten for good.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Forgotten {
    /// How many plans.
    pub plans: u64,
    /// How many bytes of the disk that freed.
    pub bytes: u64,
}

/// A moment in the life of a plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Moment {
    /// The place of its event.
    pub sequence: Sequence,
    /// When it was, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened, in one word.
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
}

/// A command that is about to run in a sandbox.
#[derive(Clone, Debug)]
pub struct NewCommandRun {
    /// Whose it is.
    pub actor: Actor,
    /// With what: `shell` or `check`.
    pub tool: String,
    /// What it is, in one line.
    pub reason: String,
    /// The job.
    pub job: Option<String>,
}

/// A command may run in a sandbox. It must be followed by [`Plans::leave`] when nothing of it runs any more; if the
/// daemon dies before, the next one does that.
#[derive(Clone, Debug)]
pub struct CommandRun {
    /// Names it.
    pub id: String,
    /// The plan.
    pub plan: PlanId,
    /// How it gets in.
    pub entrance: Entrance,
}
