//! Plans: isolated pieces of work on a workspace, applied as a whole or not at all, and undone one by one.
//!
//! - [`Plans`] is the service: it opens plans, records changes to them, applies and undoes them.
//! - [`PlanExecutionContext`] is a plan from the view of one actor; a [`ChangesetHandle`] records that actor's
//!   changes.
//! - [`Bases`] keep a copy of a workspace; a [`Sandbox`] shows it to a command and isolates the command's writes.
//! - [`merge_changes`], [`diff`](fn@diff) and [`OverlapDetector`] compute the result of changes without touching
//!   anything.
//! - [`landing`] applies changes to a tree, all or nothing.
//!
//! **Who owns the state:** the log. One worker per plan and one landing queue per workspace do one thing after the
//! other, and every change is a commit on the version that they saw.
//!
//! **What must not happen here:** HTTP, jobs, agents.

#![expect(
    missing_docs,
    reason = "a field or a variant that is named after what it holds needs no sentence"
)]

mod answers;
mod attributes;
mod base;
mod base_request;
mod changeset;
mod collect;
mod contents;
mod context;
mod diff;
mod discarding;
mod entry;
mod error;
mod explore;
mod forget;
mod git_commit;
mod ignores;
mod inner;
pub mod landing;
mod landing_queue;
mod landings;
mod log_contents;
mod manifest;
mod merge;
mod opening;
mod options;
mod overlap_detector;
mod overlaps;
mod path;
mod plan;
mod plan_worker;
mod recover;
mod recovery_list;
mod rescued;
mod root_check;
mod sandbox;
mod sandbox_view;
mod scan;
mod service;
mod stat_cache;
mod state;
#[cfg(test)]
mod state_cases;
#[cfg(test)]
mod state_model;
mod store;
#[cfg(test)]
mod stored_forms;
mod streams;
mod tree;
mod uncarried;
mod workers;
mod workspace;
mod workspaces;

pub use answers::{
    ApplyRequest, ChangeFiles, CommandRun, FileFound, FileOperation, FilesChanged, Forgotten, GcPolicy,
    LandingOutcome, Moment, Occupied, Opened, OutcomePath, PlanQuery, Repair, RepairEnd, Repaired,
    RestoreRequest, Restored, Run, SeenFile, Unapplied, UndoRequest,
};
pub use base::{Base, BaseError, Bases, CollectMode, Freed, Ignored, LeftOut, Taken, WhyLeftOut};
pub use changeset::{Attribution, Changeset, ChangesetRecord};
pub use contents::{Contents, TEXT_LIMIT_BYTES};
pub use context::{ChangesetHandle, PlanExecutionContext};
pub use diff::{Diff, FileDiff, diff, write_patch};
pub use entry::{Change, ChangeKind, Entry, LinkTarget, MODE_MASK};
pub use error::PlanError;
pub use explore::{Explorer, Visit, WalkOver};
pub use git_commit::{Author, GitCommit, GitCommitError, commit_paths};
pub use ignores::{IgnoreRules, IgnoreSources};
pub use manifest::{BadManifest, Manifest, ManifestId};
pub use merge::{
    Conflict, ConflictKind, Effect, ListConflict, MergeDriver, Merged, MergedAll, Net, Ours, TextMerge, fold,
    invert, is_text, merge_all, merge_changes, merge_text,
};
pub use options::{LandingSteps, PlansOptions, PlansSettings};
pub use overlap_detector::{OverlapDetector, OverlapPath};
pub use path::{BadPath, RelPath};
pub use plan::{
    Actor, Attempt, Check, CheckEnd, CheckRun, Facts, Landed, NewPlan, OpenChangeset, Plan, PlanOrigin,
    PlanRecord, Recorded, Refused, Running, Unrecorded,
};
pub use plan_worker::CaptureHold;
pub use recover::Recovered;
pub use recovery_list::{Recovery, RecoveryOf};
pub use rescued::{RescueReason, Rescued, RescuedKind, RescuedList, RescuedRecord};
pub use sandbox::{
    Captured, Entrance, Known, Sandbox, SandboxError, SandboxSpec, Strategies, Strategy, remove_tree,
};
pub use sandbox_view::SandboxView;
pub use service::Plans;
pub use streams::{PlanEvent, unreadable_head};
pub use tree::{ContentSink, FileAttributes, FileKind, FileStat, ReadBounds, Tree, TreeError};
pub use workspace::{StuckLanding, Workspace, WorkspaceRecord};
