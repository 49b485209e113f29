//! Workspaces.

use std::path::Path;

use plans::{PlanError, Plans, Presence, Workspace};

use super::written;

pub(crate) fn workspace_to_wire(workspace: &Workspace) -> api::Workspace {
    let record = &workspace.record;
    api::Workspace {
        id: workspace.id.to_string(),
        state: match workspace.presence {
            Presence::Present => api::WorkspaceState::Present,
            Presence::Missing => api::WorkspaceState::Missing,
            Presence::Replaced => api::WorkspaceState::Replaced,
            Presence::Unreachable => api::WorkspaceState::Unreachable,
        },
        root: record.root.display().to_string(),
        git: workspace.is_git,
        checks: record.checks.clone(),
        registered_at: written(record.registered_at),
        open_plans: workspace.open_plans,
    }
}

/// The workspace that a directory is in, if there is one.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn workspace_of(plans: &Plans, directory: &Path) -> Result<Option<Workspace>, PlanError> {
    // A directory that is not there may still have been one.
    let given = directory.to_owned();
    let found = tokio::task::spawn_blocking(move || given.canonicalize()).await;
    let directory = found
        .ok()
        .and_then(Result::ok)
        .unwrap_or_else(|| directory.to_owned());
    let mut workspaces = plans.workspaces().await?;
    workspaces.retain(|workspace| directory.starts_with(&workspace.record.root));
    Ok(workspaces.pop())
}
