//! Truth at start: what an earlier life has left half-way is set right before anybody asks.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use crate::collect::own_plans;
use crate::error::PlanError;
use crate::lander::{left_staged, never_begun};
use crate::plan::State;
use crate::shared::{Shared, blocking};
use crate::workspaces;

/// Makes the directories of the service. Only the user may look into them.
pub(crate) fn make_directories(directory: &Path) -> Result<(), PlanError> {
    for name in ["", "bases", "sandboxes", "staging", "workspaces", "kept"] {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory.join(name));
        made.map_err(|source| PlanError::Io {
            what: format!("making {}", directory.join(name).display()),
            source,
        })?;
    }
    Ok(())
}

/// Sets right what was left: landings first, then commands, then what belongs to nobody. What was done is said.
pub(crate) async fn recover(shared: &Arc<Shared>) -> Result<Vec<String>, PlanError> {
    let mut notes = Vec::new();
    for workspace in workspaces::registered(shared).await? {
        if workspace.record.landing.is_none() {
            continue;
        }
        let recovered = shared.at_workspace(workspace.id, |lander| Box::pin(lander.recover()));
        match recovered.await {
            Ok(told) => notes.extend(told),
            // The workspace may be on a disk that is not there today. It stays as it is, and is said.
            Err(error) => notes.push(format!(
                "an apply or undo on {} is still half-way: {error}",
                workspace.record.root.display()
            )),
        }
    }
    for (workspace, id) in left_staged(shared).await? {
        let told = id.clone();
        let swept = shared.at_workspace(workspace, move |lander| {
            Box::pin(async move { lander.sweep(&id).await })
        });
        match swept.await {
            Ok(told) => notes.extend(told),
            Err(error) => notes.push(format!("what was staged for {told} is still there: {error}")),
        }
    }
    for written in never_begun(shared).await? {
        shared.log.remove(vec![written]).await?;
    }
    let plans = own_plans(shared).await?;
    let mut commands = 0;
    for plan in &plans {
        if plan.record.running.is_empty() {
            continue;
        }
        match shared.at_plan(plan.id, |desk| Box::pin(desk.leave_all())).await {
            Ok(count) => commands += count,
            Err(error) => notes.push(format!(
                "what commands did in {} is not recorded: {error}",
                plan.id
            )),
        }
    }
    if commands > 0 {
        notes.push(format!(
            "{commands} commands in sandboxes had been cut off; what they did is recorded"
        ));
    }
    let known = plans
        .iter()
        .filter(|plan| plan.record.has_sandbox)
        .map(|plan| plan.id.to_string());
    let (known, sandboxes): (HashSet<String>, _) = (known.collect(), shared.sandboxes());
    let removed = blocking(move || remove_others(&sandboxes, &known)).await?;
    if removed > 0 {
        notes.push(format!(
            "{removed} sandboxes that belonged to no plan were taken away"
        ));
    }
    for plan in plans {
        if matches!(plan.record.state, State::Open | State::Sealed) {
            let published = shared.at_plan(plan.id, |desk| {
                Box::pin(async move {
                    desk.snapshot().await?;
                    desk.publish_quietly();
                    Ok(())
                })
            });
            published.await?;
        }
    }
    Ok(notes)
}

/// Takes away what was being made when the daemon was killed.
fn remove_others(sandboxes: &Path, known: &HashSet<String>) -> usize {
    let Ok(entries) = fs::read_dir(sandboxes) else {
        return 0;
    };
    let others = entries
        .flatten()
        .filter(|entry| !known.contains(&*entry.file_name().to_string_lossy()));
    let removed = others.filter(|entry| match fs::remove_dir_all(entry.path()) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, path = %entry.path().display(), "a sandbox of no plan stays behind");
            false
        }
    });
    removed.count()
}
