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
}

/// Whether a workspace is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
