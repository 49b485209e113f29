//! Recovery: a landing that an earlier daemon left unfinished is finished or rolled back as a whole.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use eventlog::{ReadError, StreamId, Version};
use protocol::{WorkspaceId, WorkspaceState};

use super::LandingQueue;
use super::begin::ActiveLanding;
use super::rescue::rescued_note;
use super::stored::{self, StoredLanding};
use super::target::LandingTarget;
use crate::inner::{PlansInner, blocking, with_causes};
use crate::landing::{self, Landing, LandingId};
use crate::landings::LandingState;
use crate::{PlanError, Rescued, StuckLanding, Workspace, workspaces};

impl LandingQueue {
    /// Finishes a landing that was left on the workspace, if there is one, and returns the workspace in its new
    /// state.
    pub(super) async fn settle(&self, workspace: &Workspace) -> Result<Workspace, PlanError> {
        if let Some(id) = &workspace.record.landing {
            let ended = self.recover_landing(workspace, id).await?;
            let told = ended.sentence();
            tracing::warn!(landing = %id, workspace = %workspace.record.root.display(), "{told}");
            return workspaces::get(&self.inner, self.id).await;
        }
        Ok(workspace.clone())
    }

    /// Like `settle`, at daemon start. Returns the outcome in one line, if there was a landing.
    pub(crate) async fn recover(&mut self) -> Result<Option<String>, PlanError> {
        let workspace = workspaces::get(&self.inner, self.id).await?;
        let Some(id) = workspace.record.landing.clone() else {
            return Ok(None);
        };
        let ended = self.recover_landing(&workspace, &id).await?;
        let (root, told) = (workspace.record.root.display(), ended.sentence());
        Ok(Some(format!(
            "an apply or undo on {root} had been left half-way; {told}"
        )))
    }

    /// Removes staged files that an earlier daemon left, of a landing that is over or was never begun. What others had
    /// saved into them is kept and reported.
    pub(crate) async fn sweep(&mut self, id: &str) -> Result<Vec<String>, PlanError> {
        let workspace = self.workspace().await?;
        let begun = self.begun_before(&workspace, id).await?;
        let mut notes = Vec::new();
        match begun.stored.record.state {
            // It couldn't be finished, which was reported.
            LandingState::Begun => {}
            LandingState::Written => self.discard(&begun).await?,
            LandingState::Done | LandingState::TakenBack => {
                let rescued = self.finish(&begun, Vec::new()).await?;
                notes.extend(rescued.iter().map(rescued_note));
            }
            // What it held was kept before that was recorded.
            LandingState::SetAside => self.remove_staged(&begun).await?,
        }
        Ok(notes)
    }

    /// Finishes a landing or rolls it back. If neither is possible, that is remembered and reported.
    pub(super) async fn recover_landing(
        &self,
        workspace: &Workspace,
        id: &str,
    ) -> Result<Recovered, PlanError> {
        let ended = match workspace.presence {
            WorkspaceState::Present => self.try_to_recover(workspace, id).await,
            WorkspaceState::Missing | WorkspaceState::Replaced | WorkspaceState::Unreachable => {
                Err(workspaces::gone(workspace))
            }
        };
        match ended {
            Ok(ended) => {
                self.inner.stuck.set(self.id, None);
                Ok(ended)
            }
            Err(error) => Err(self.stuck(workspace, id, error).await),
        }
    }

    async fn try_to_recover(&self, workspace: &Workspace, id: &str) -> Result<Recovered, PlanError> {
        let begun = self.begun_before(workspace, id).await?;
        let (begun, outcome) = self.carry_out(begun).await?;
        self.end_recovered(begun, outcome).await
    }

    /// Remembers that a landing can't be finished, and reports it. Temporary failures aren't remembered.
    pub(super) async fn stuck(&self, workspace: &Workspace, id: &str, error: PlanError) -> PlanError {
        if matches!(
            error,
            PlanError::Closing | PlanError::Log(_) | PlanError::Commit(_) | PlanError::WorkspaceGone { .. }
        ) {
            return error;
        }
        let record = stored::read(&self.inner.log, id).await.ok();
        let record = record.map(|landing| landing.record);
        let why = with_causes(&error);
        self.inner.stuck.set(
            self.id,
            Some(StuckLanding {
                landing: id.to_owned(),
                what: record.as_ref().map(|record| record.what),
                plans: record
                    .iter()
                    .flat_map(|record| record.plans.iter().copied())
                    .collect(),
                since: record.as_ref().map(|record| record.at),
                why: why.clone(),
            }),
        );
        PlanError::LandingStuck {
            root: workspace.record.root.clone(),
            why,
        }
    }

    /// A landing of an earlier daemon, from the log.
    pub(super) async fn begun_before(
        &self,
        workspace: &Workspace,
        id: &str,
    ) -> Result<ActiveLanding, PlanError> {
        let stored = stored::read(&self.inner.log, id).await?;
        let done = stored::effects(&self.inner.log, &stored).await?;
        let landing = Landing {
            id: id
                .parse()
                .map_err(|_| PlanError::Base(format!("`{id}` is no landing")))?,
            effects: done.effects.clone(),
            attributes: done.given.clone(),
        };
        let (target, run_id) = match stored.record.parent {
            None => (LandingTarget::Workspace(workspace.record.root.clone()), None),
            Some(parent) => {
                let opened = self.inner.at_plan(parent, |worker| {
                    Box::pin(async move {
                        let command_runs = worker.plan().await?.record.running;
                        let run_id = command_runs.into_iter().find(|running| running.tool == "merge");
                        Ok((worker.sandbox().await?, run_id.map(|running| running.id)))
                    })
                });
                let (sandbox, run_id) = opened.await?;
                (LandingTarget::Parent(parent, sandbox), run_id)
            }
        };
        Ok(ActiveLanding {
            root: workspace.record.root.display().to_string(),
            landing,
            staged: None,
            stored,
            done,
            target,
            run_id,
            combined: std::collections::HashSet::new(),
            holds: Vec::new(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) state: LandingState,
    pub(super) rescued: Vec<Rescued>,
}

impl Recovered {
    fn sentence(&self) -> String {
        let mut text = match self.state {
            LandingState::Done => "it was finished".to_owned(),
            _ => "it was taken back".to_owned(),
        };
        for rescued in &self.rescued {
            text.push_str("; ");
            text.push_str(&rescued_note(rescued));
        }
        text
    }
}

pub(crate) async fn left_staged(inner: &Arc<PlansInner>) -> Result<Vec<(WorkspaceId, String)>, PlanError> {
    let mut places = vec![inner.staging()];
    for workspace in workspaces::list(inner).await? {
        // Reading a directory on a file system that doesn't respond would take forever.
        if workspace.presence != WorkspaceState::Unreachable {
            places.push(workspace.record.root.join(landing::INSIDE));
        }
    }
    let names = blocking(move || {
        let entries = places.iter().filter_map(|place| fs::read_dir(place).ok());
        let names = entries.flatten().flatten().map(|entry| entry.file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .collect::<BTreeSet<String>>()
    });
    let mut left = Vec::new();
    for name in names.await? {
        let Ok(id) = name.parse::<LandingId>() else {
            continue;
        };
        // A landing that isn't in the log belongs to another home, or to another program.
        match StoredLanding::read(&inner.log, id.to_string()).await {
            Ok(Some(landing)) if landing.record.home == inner.home_id => {
                left.push((landing.record.workspace, name));
            }
            Ok(_) | Err(ReadError::Unreadable(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(left)
}

/// Landings that were recorded but never begun, with the versions of their streams.
pub(crate) async fn never_begun(inner: &Arc<PlansInner>) -> Result<Vec<(StreamId, Version)>, PlanError> {
    let mut left = StoredLanding::all(&inner.log, Some(LandingState::Written.name())).await?;
    left.retain(|landing| landing.record.home == inner.home_id);
    Ok(left.iter().map(StoredLanding::at).collect::<Result<_, _>>()?)
}
