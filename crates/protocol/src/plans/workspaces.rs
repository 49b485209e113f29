//! Workspaces, and the sandbox strategies of this machine.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::SandboxStrategy;

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// The id of the workspace.
    pub id: String,
    /// Whether the workspace still exists.
    pub state: WorkspaceState,
    /// The path of the workspace.
    pub root: String,
    /// Whether it is a git repository.
    pub git: bool,
    /// Commands that every plan of the workspace must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// When the workspace was registered.
    #[schema(format = "date-time")]
    pub registered_at: String,
    /// The number of its plans that are open or sealed.
    pub open_plans: u64,
    /// An apply or undo that is stuck half-way. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckLanding>,
    /// A one-line notice for people, for example that the file system can't swap two files atomically. Absent
    /// if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// An apply or undo that is half-way, and could neither be finished nor rolled back at the last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StuckLanding {
    /// The operation: `apply` or `undo`. Absent if that can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The ids of the plans.
    pub plans: Vec<String>,
    /// When it started. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub since: Option<String>,
    /// Why it is stuck.
    pub why: String,
}

/// The body of `POST /v1/workspaces/{id}/repair`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairWorkspace {
    /// If the operation can neither be finished nor rolled back, abandon it in its current state, and keep
    /// everything it holds. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
}

/// The response of `POST /v1/workspaces/{id}/repair`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceRepaired {
    /// The result of the repair.
    pub state: RepairState,
    /// The operation that is or was stuck. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckLanding>,
    /// The content that had to be saved.
    pub rescued: Vec<Rescued>,
    /// If the operation was set aside: the paths that were changed and stay changed.
    pub changed: Vec<String>,
}

/// The result of repairing an apply or undo that was left half-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairState {
    /// There was nothing to repair.
    Nothing,
    /// It was finished.
    Finished,
    /// It was rolled back.
    TakenBack,
    /// It is still stuck.
    Stuck,
    /// It was abandoned in its current state.
    SetAside,
}

/// User content that an apply or undo couldn't leave in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rescued {
    /// The id of the content.
    #[schema(example = "rescued_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The id of the workspace it was in.
    pub workspace: String,
    /// The path of that workspace.
    pub root: String,
    /// The path it belongs at.
    pub path: String,
    /// The file type: `file`, `symlink`, `directory` or `special`.
    pub kind: String,
    /// The size of a file, in bytes. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The operation: `apply` or `undo`.
    pub what: String,
    /// The ids of the plans.
    pub plans: Vec<String>,
    /// When the content was saved.
    #[schema(format = "date-time")]
    pub since: String,
    /// Why the content was saved, in one sentence.
    pub why: String,
    /// Where the content is now.
    pub kept_at: String,
}

/// The response of `GET /v1/rescued`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RescuedList {
    /// The saved content, newest first.
    pub rescued: Vec<Rescued>,
    /// Directories with saved content whose description can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The optional body of `POST /v1/rescued/{id}/restore`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreRescued {
    /// Another path in the workspace. Defaults to the path the content belongs at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// If something exists at the path, save that in turn. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swap: bool,
}

/// The response of `POST /v1/rescued/{id}/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RescuedRestored {
    /// The path the content was restored to.
    pub path: String,
    /// The content that was there before, which is now saved. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Rescued>,
}

/// Whether a workspace still exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceState {
    /// It is at its path.
    Present,
    /// Nothing exists at its path.
    Missing,
    /// The directory at its path isn't the one that was registered.
    Replaced,
    /// Its file system doesn't respond, for example because a file server is down.
    Unreachable,
}

/// The response of `GET /v1/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceList {
    /// The workspaces, sorted by path.
    pub workspaces: Vec<Workspace>,
}

/// The body of `PUT /v1/workspaces/{id}/checks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWorkspaceChecks {
    /// The commands. They replace the previous ones.
    pub checks: Vec<String>,
}

/// The sandbox strategies of this machine: the response of `GET /v1/plans/strategies`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrategyList {
    /// The strategies, best first. The first one that works is used.
    pub strategies: Vec<StrategyState>,
}

/// Whether a sandbox strategy works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StrategyState {
    /// The strategy.
    pub strategy: SandboxStrategy,
    /// Whether the strategy works.
    pub works: bool,
    /// Why it doesn't work, or a note about it.
    pub text: String,
}
