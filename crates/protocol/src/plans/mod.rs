//! Plans: isolated pieces of work on a workspace, applied whole or not at all.
//!
//! Paths of files are relative to the root of the workspace. In them, bytes that are not UTF-8 and control characters
//! stand as `\xNN`, and a backslash as two.

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
