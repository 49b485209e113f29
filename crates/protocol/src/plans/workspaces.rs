//! Workspaces, and how sandboxes are made on this machine.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::SandboxStrategy;

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Whether it is still there.
    pub state: WorkspaceState,
    /// Where it is.
    pub root: String,
    /// Whether it is a git repository.
    pub git: bool,
    /// Commands that every plan of it must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// When it was registered.
    #[schema(format = "date-time")]
    pub registered_at: String,
    /// How many of its plans are open or sealed.
    pub open_plans: u64,
    /// An apply or undo that is stuck half-way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckLanding>,
    /// What a person should know, in one line; for example that its file system cannot exchange two files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// An apply or undo that is half-way, and could neither be finished nor taken back when that was last tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StuckLanding {
    /// What it is: `apply` or `undo`; not given if that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The plans.
    pub plans: Vec<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub since: Option<String>,
    /// What is in the way.
    pub why: String,
}

/// The body of `POST /v1/workspaces/{id}/repair`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairWorkspace {
    /// If it can neither be finished nor taken back, give it up as it is, and keep everything that it holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
}

/// The answer of `POST /v1/workspaces/{id}/repair`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceRepaired {
    /// What became of it.
    pub state: RepairState,
    /// What is or was stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckLanding>,
    /// What had to be kept.
    pub rescued: Vec<Rescued>,
    /// The paths that were changed and stay so, if it was set aside.
    pub changed: Vec<String>,
}

/// What became of an apply or undo that was left half-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairState {
    /// There was none.
    Nothing,
    /// It was finished.
    Finished,
    /// It was taken back.
    TakenBack,
    /// It is still stuck.
    Stuck,
    /// It was given up as it was.
    SetAside,
}

/// Content of a user that an apply or undo could not leave in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rescued {
    /// Its id.
    #[schema(example = "rescued_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The workspace that it was in.
    pub workspace: String,
    /// Where that is.
    pub root: String,
    /// The path that it belongs to.
    pub path: String,
    /// What it is: `file`, `symlink`, `directory` or `special`.
    pub kind: String,
    /// How many bytes, for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What was being done: `apply` or `undo`.
    pub what: String,
    /// The plans.
    pub plans: Vec<String>,
    /// Since when it is kept.
    #[schema(format = "date-time")]
    pub since: String,
    /// Why it is kept, in a sentence.
    pub why: String,
    /// Where it is now.
    pub kept_at: String,
}

/// The answer of `GET /v1/rescued`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RescuedList {
    /// What is kept, newest first.
    pub rescued: Vec<Rescued>,
    /// Directories of kept content whose description cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The optional body of `POST /v1/rescued/{id}/restore`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreRescued {
    /// Another path of the workspace; the one that it belongs to if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// If something is at the path, keep that in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swap: bool,
}

/// The answer of `POST /v1/rescued/{id}/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RescuedRestored {
    /// Where it is.
    pub path: String,
    /// What was there, which is kept now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Rescued>,
}

/// Whether a workspace is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// It is where it was.
    Present,
    /// There is nothing at its path.
    Missing,
    /// There is another directory at its path than the one that was registered.
    Replaced,
    /// The file system that it is on does not answer, for example because its server is away.
    Unreachable,
}

/// The answer of `GET /v1/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceList {
    /// The workspaces, by path.
    pub workspaces: Vec<Workspace>,
}

/// The body of `PUT /v1/workspaces/{id}/checks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWorkspaceChecks {
    /// The commands, in place of those that there were.
    pub checks: Vec<String>,
}

/// How sandboxes can be made here; the answer of `GET /v1/plans/strategies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrategyList {
    /// The strategies, the best first. The first that works is the one that is used.
    pub strategies: Vec<StrategyState>,
}

/// Whether a way to make sandboxes works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrategyState {
    /// The strategy.
    pub strategy: SandboxStrategy,
    /// Whether it works.
    pub works: bool,
    /// Why it does not, or what is to be said of it.
    pub text: String,
}
