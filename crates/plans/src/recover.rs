//! Recovery at start: finishing or undoing what an earlier daemon left unfinished, before anyone can access it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eventlog::{StreamId, Version};
use protocol::{PlanId, PlanState, WorkspaceId};
use tokio::sync::oneshot;

use crate::collect::own_plans;
use crate::inner::{PlansInner, blocking};
use crate::landing_queue::{LandingQueue, left_staged, never_begun};
use crate::overlaps::Tell;
use crate::sandbox::unpin_stray;
use crate::streams::remove_unchanged;
use crate::{Plan, PlanError, Recovery, RecoveryOf, remove_tree, store, workspaces};

/// Makes the service's directories. Only the user may read them.
pub(crate) fn make_directories(directory: &Path) -> Result<(), PlanError> {
    for name in ["", "bases", "sandboxes", "staging", "workspaces", "kept"] {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory.join(name));
        made.map_err(PlanError::io(format!(
            "making {}",
            directory.join(name).display()
        )))?;
    }
    Ok(())
}

/// What an earlier daemon has left, as found before anything could change.
#[derive(Debug, Default)]
struct Left {
    /// Workspaces with an interrupted landing, or with staged files.
    workspaces: BTreeMap<WorkspaceId, LeftOnWorkspace>,
    /// Landings that were recorded but never begun.
    never_begun: Vec<(StreamId, Version)>,
    cut_off: Vec<Plan>,
    /// Sandbox directories that don't belong to a plan.
    strays: Vec<PathBuf>,
    /// Plans that may still need a git commit.
    uncommitted: Vec<PlanId>,
}

#[derive(Debug, Default)]
struct LeftOnWorkspace {
    root: PathBuf,
    landing: bool,
    staged: Vec<String>,
}

/// The recovery of what an earlier daemon has left. It continues whether or not anyone waits for it.
#[derive(Debug)]
pub struct Recovered {
    notes: oneshot::Receiver<Vec<String>>,
}

impl Recovered {
    /// Waits until everything is recovered, and returns notes about it.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn notes(&mut self) -> Vec<String> {
        // Nothing is sent if the service is closed first.
        (&mut self.notes).await.unwrap_or_default()
    }
}

/// Starts the recovery: landings first, then commands, then what doesn't belong to anything.
///
/// When this returns, every task is queued at its worker. So a request for one of these plans or workspaces finds it
/// recovered, and other requests don't have to wait.
pub(crate) async fn begin(inner: &Arc<PlansInner>) -> Result<Recovered, PlanError> {
    // Before anything new is kept: what is unfinished now is from an earlier daemon, and its original is
    // still there.
    let shelf = inner.shelf();
    let swept = blocking(move || shelf.sweep()).await?;
    let (left, unharmed) = survey(inner).await?;
    let (mut of_workspaces, mut of_plans) = (Vec::new(), Vec::new());
    let held_up: HashSet<WorkspaceId> = left
        .workspaces
        .iter()
        .filter(|(_, left)| left.landing)
        .map(|(id, _)| *id)
        .collect();
    for (id, left) in left.workspaces {
        of_workspaces.push(leave_at_workspace(inner, id, left));
    }
    let is_held_up = |plan: &Plan| held_up.contains(&plan.record.facts.workspace);
    let (later, now): (Vec<Plan>, Vec<Plan>) = left.cut_off.into_iter().partition(is_held_up);
    for plan in now {
        of_plans.push((plan.id, leave_at_plan(inner, plan.id)));
    }
    let (told_later, told_now): (Vec<Plan>, Vec<Plan>) = unharmed.into_iter().partition(is_held_up);
    let mut notes = tell_at_start(inner, told_now).await;
    if let Err(error) = swept {
        notes.push(format!(
            "unfinished copies of rescued content stay behind: {error}"
        ));
    }
    let (finished, waiting) = oneshot::channel();
    let own = Arc::clone(inner);
    inner.tasks.spawn("recovering plans", async move {
        for done in of_workspaces {
            notes.extend(done.await.unwrap_or_default());
        }
        notes.extend(commit_left(&own, left.uncommitted).await);
        // A landing on a plan's sandbox must find it unchanged.
        for plan in later {
            of_plans.push((plan.id, leave_at_plan(&own, plan.id)));
        }
        notes.extend(tell_at_start(&own, told_later).await);
        let mut commands = 0;
        for (plan, done) in of_plans {
            match done.await {
                Ok(Ok(count)) => commands += count,
                Ok(Err(error)) => notes.push(format!("what commands did in {plan} is not recorded: {error}")),
                Err(_) => notes.push(format!(
                    "what commands did in {plan} is recorded at the next start"
                )),
            }
        }
        if commands > 0 {
            notes.push(format!(
                "{commands} commands in sandboxes had been cut off; what they did is recorded"
            ));
        }
        notes.extend(clear(&own, left.never_begun, left.strays).await);
        // The caller may not wait for it.
        drop(finished.send(notes));
    });
    Ok(Recovered { notes: waiting })
}

/// Has plans compared with each other. Reports those that can't be.
async fn tell_at_start(inner: &Arc<PlansInner>, plans: Vec<Plan>) -> Vec<String> {
    let mut notes = Vec::new();
    for Plan { id, .. } in plans {
        if let Err(error) = inner
            .at_plan(id, |worker| Box::pin(worker.republish(Tell::Nobody)))
            .await
        {
            notes.push(format!("{id} is not compared with other plans: {error}"));
        }
    }
    notes
}

/// Searches for what was left. Also returns the plans that are fine and haven't ended.
async fn survey(inner: &Arc<PlansInner>) -> Result<(Left, Vec<Plan>), PlanError> {
    let mut left = Left::default();
    let mut roots = HashMap::new();
    // Concurrently, since the log may be far away.
    let (registered, staged, never_begun, plans) = tokio::try_join!(
        workspaces::registered(inner),
        left_staged(inner),
        never_begun(inner),
        own_plans(inner),
    )?;
    left.never_begun = never_begun;
    for workspace in registered {
        if workspace.record.landing.is_some() {
            left.workspaces.entry(workspace.id).or_default().landing = true;
        }
        roots.insert(workspace.id, workspace.record.root);
    }
    for (workspace, landing) in staged {
        left.workspaces.entry(workspace).or_default().staged.push(landing);
    }
    for (id, on_it) in &mut left.workspaces {
        on_it.root = roots.remove(id).unwrap_or_default();
    }
    let known = plans
        .iter()
        .filter(|plan| plan.record.has_sandbox)
        .map(|plan| plan.id.to_string());
    // What belongs to an unreadable plan is kept with it.
    let kept = inner
        .log
        .quarantined()
        .into_iter()
        .filter_map(|head| Some(head.stream.strip_prefix("plan/")?.to_owned()));
    let (known, sandboxes): (HashSet<String>, _) = (known.chain(kept).collect(), inner.sandboxes());
    left.strays = blocking(move || strays(&sandboxes, &known)).await?;
    let mut unharmed = Vec::new();
    for plan in plans {
        let landed = plan.record.landed.as_ref();
        if plan.record.landing.is_some() || landed.is_some_and(|landed| landed.commit_wanted.is_some()) {
            left.uncommitted.push(plan.id);
        }
        if !plan.record.running.is_empty() {
            left.cut_off.push(plan);
        } else if matches!(plan.record.state, PlanState::Open | PlanState::Sealed) {
            unharmed.push(plan);
        }
    }
    Ok((left, unharmed))
}

fn leave_at_workspace(
    inner: &Arc<PlansInner>,
    id: WorkspaceId,
    left: LeftOnWorkspace,
) -> oneshot::Receiver<Vec<String>> {
    let (done, waiting) = oneshot::channel();
    let under_way = inner.recovering.begin(Recovery {
        of: RecoveryOf::Workspace(id),
        what: format!(
            "an apply or undo on {} is being finished or undone",
            left.root.display()
        ),
    });
    let make = || LandingQueue::new(Arc::clone(inner), id);
    inner.landing_queues.enqueue(&id, make, move |queue| {
        Box::pin(async move {
            let mut notes = Vec::new();
            if left.landing {
                match queue.recover().await {
                    Ok(told) => notes.extend(told),
                    // The workspace may be on a disk that isn't mounted today. It is left alone and reported.
                    Err(error) => notes.push(format!(
                        "an apply or undo on {} is still half-way: {error}",
                        left.root.display()
                    )),
                }
            }
            for staged in &left.staged {
                match queue.sweep(staged).await {
                    Ok(told) => notes.extend(told),
                    Err(error) => {
                        notes.push(format!("what was staged for {staged} is still there: {error}"));
                    }
                }
            }
            drop(under_way);
            drop(done.send(notes));
        })
    });
    waiting
}

/// Queues the recording of a plan's commands at its worker.
fn leave_at_plan(inner: &Arc<PlansInner>, id: PlanId) -> oneshot::Receiver<Result<usize, PlanError>> {
    let (done, waiting) = oneshot::channel();
    let under_way = inner.recovering.begin(Recovery {
        of: RecoveryOf::Plan(id),
        what: "what its commands did before the daemon ended is being recorded".to_owned(),
    });
    inner.enqueue_at_plan(id, move |worker| {
        Box::pin(async move {
            let left = worker.end_finished_commands().await;
            if let Err(error) = worker.republish(Tell::Nobody).await {
                tracing::warn!(%error, plan = %id, "a plan is not compared with others");
            }
            drop(under_way);
            drop(done.send(left));
        })
    });
    waiting
}

/// Makes the git commits of applied plans that an earlier daemon didn't get to.
async fn commit_left(inner: &Arc<PlansInner>, plans: Vec<PlanId>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut by_workspace: BTreeMap<WorkspaceId, Vec<Plan>> = BTreeMap::new();
    for id in plans {
        match store::plan(&inner.log, id).await {
            Ok(plan) => by_workspace
                .entry(plan.record.facts.workspace)
                .or_default()
                .push(plan),
            Err(error) => notes.push(format!("the git commit of {id} may be missing: {error}")),
        }
    }
    for (workspace, plans) in by_workspace {
        let committed = inner.at_workspace(workspace, move |queue| Box::pin(queue.commit_left(plans)));
        match committed.await {
            Ok(told) => notes.extend(told),
            Err(error) => notes.push(format!(
                "a git commit of what was applied is still to be made: {error}"
            )),
        }
    }
    notes
}

/// Removes what doesn't belong to anything.
async fn clear(
    inner: &Arc<PlansInner>,
    never_begun: Vec<(StreamId, Version)>,
    strays: Vec<PathBuf>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for landing in never_begun {
        // Its workspace may have removed it already.
        match remove_unchanged(&inner.log, vec![landing]).await {
            Ok(_) => {}
            Err(error) => notes.push(format!("a landing that was never begun is still there: {error}")),
        }
    }
    match blocking(move || remove_all(&strays)).await {
        Ok(0) | Err(_) => {}
        Ok(removed) => notes.push(format!(
            "{removed} sandboxes that belonged to no plan were removed"
        )),
    }
    notes
}

/// Sandboxes that were being made when the daemon was killed. New ones get names that don't exist yet.
fn strays(sandboxes: &Path, known: &HashSet<String>) -> Vec<PathBuf> {
    let entries = match fs::read_dir(sandboxes) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(%error, path = %sandboxes.display(), "sandboxes of no plan are not looked for");
            return Vec::new();
        }
    };
    let others = entries
        .flatten()
        .filter(|entry| !known.contains(&*entry.file_name().to_string_lossy()));
    others.map(|entry| entry.path()).collect()
}

fn remove_all(strays: &[PathBuf]) -> usize {
    let removed = strays
        .iter()
        .filter(|path| match unpin_stray(path).and_then(|()| remove_tree(path)) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a sandbox of no plan stays behind");
                false
            }
        });
    removed.count()
}
