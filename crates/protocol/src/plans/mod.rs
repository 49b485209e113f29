//! Plans: isolated pieces of work on a workspace, applied entirely or not at all.
//!
//! File paths are relative to the root of the workspace. Bytes that aren't UTF-8 and control characters are
//! written as `\xNN`, and a backslash is doubled.

mod acts;
mod changes;
mod diff;
mod plan;
mod workspaces;

pub use acts::{
    ApplyPlans, ChangePlan, CheckPlan, CollectPlans, CollectedSandbox, CommitPlans, FinishOutcome,
    FinishPlan, FinishThen, ForgetPlan, OutcomeKind, OutcomePath, PlanConflict, PlanConflictHunk, PlanFinish,
    PlanForgotten, PlanOutcome, PlanRefused, PlansCollected, UndoPlan,
};
pub use changes::{
    ChangeFiles, Changeset, ChangesetList, ChangesetState, FileOperation, FilesChanged, PlanFile,
    RecordedChange, StartChangeset,
};
pub use diff::{DiffHunk, DiffLine, DiffLineKind, DiffSummary, FileDiff, PlanDiff};
pub use plan::{
    CheckState, IfChildFails, OpenPlan, Plan, PlanBranch, PlanCheck, PlanCommand, PlanCounts, PlanHistory,
    PlanLeftOut, PlanList, PlanMoment, PlanOverlap, PlanOverlapPath, PlanState, PlanUnrecorded,
    SandboxStrategy,
};
pub use workspaces::{
    RepairState, RepairWorkspace, Rescued, RescuedList, RescuedRestored, RestoreRescued, SetWorkspaceChecks,
    StrategyList, StrategyState, StuckLanding, Workspace, WorkspaceList, WorkspaceRepaired, WorkspaceState,
};
