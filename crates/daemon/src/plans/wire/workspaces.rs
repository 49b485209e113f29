//! Workspaces.

use std::path::Path;

use plans::{Entry, PlanError, Plans, RepairEnd, Repaired, Rescued, RescuedList, StuckLanding, Workspace};

use crate::times::written;

pub(crate) fn workspace_to_wire(workspace: &Workspace) -> protocol::Workspace {
    let record = &workspace.record;
    protocol::Workspace {
        id: workspace.id.to_string(),
        state: workspace.presence,
        root: record.root.display().to_string(),
        git: workspace.is_git,
        checks: record.checks.clone(),
        registered_at: written(record.registered_at),
        open_plans: workspace.open_plans,
        stuck: workspace.stuck.as_ref().map(stuck_to_wire),
        notice: workspace.notice.clone(),
    }
}

fn stuck_to_wire(stuck: &StuckLanding) -> protocol::StuckLanding {
    protocol::StuckLanding {
        what: stuck.what.map(|what| what.as_str().to_owned()),
        plans: stuck.plans.iter().map(ToString::to_string).collect(),
        since: stuck.since.map(written),
        why: stuck.why.clone(),
    }
}

pub(crate) fn repaired_to_wire(repaired: &Repaired) -> protocol::WorkspaceRepaired {
    let (state, stuck) = match &repaired.end {
        RepairEnd::Nothing => (protocol::RepairState::Nothing, None),
        RepairEnd::Finished => (protocol::RepairState::Finished, None),
        RepairEnd::TakenBack => (protocol::RepairState::TakenBack, None),
        RepairEnd::Stuck(stuck) => (protocol::RepairState::Stuck, Some(stuck)),
        RepairEnd::SetAside(stuck) => (protocol::RepairState::SetAside, Some(stuck)),
    };
    protocol::WorkspaceRepaired {
        state,
        stuck: stuck.map(stuck_to_wire),
        rescued: repaired.rescued.iter().map(rescued_to_wire).collect(),
        changed: repaired.changed.iter().map(ToString::to_string).collect(),
    }
}

pub(crate) fn rescued_to_wire(rescued: &Rescued) -> protocol::Rescued {
    let record = &rescued.record;
    protocol::Rescued {
        id: rescued.id.to_string(),
        workspace: record.workspace.to_string(),
        root: record.root.clone(),
        path: record.path.to_string(),
        kind: record.kind.name().to_owned(),
        bytes: match &record.entry {
            Some(Entry::File { size, .. }) => Some(*size),
            _ => None,
        },
        what: record.what.as_str().to_owned(),
        plans: record.plans.iter().map(ToString::to_string).collect(),
        since: written(record.since),
        why: record.why.sentence().to_owned(),
        kept_at: rescued.at.display().to_string(),
    }
}

pub(crate) fn rescued_list_to_wire(list: &RescuedList) -> protocol::RescuedList {
    protocol::RescuedList {
        rescued: list.rescued.iter().map(rescued_to_wire).collect(),
        unreadable: list
            .unreadable
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

pub(crate) async fn workspace_of(plans: &Plans, directory: &Path) -> Result<Option<Workspace>, PlanError> {
    // A directory that no longer exists may still have been one.
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
