//! Setting aside a landing that can be neither finished nor rolled back: what it holds is kept, and nothing waits for
//! it any longer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use eventlog::Commit;
use protocol::PlanId;

use super::LandingQueue;
use super::begin::{ActiveLanding, land_error};
use super::rescue::{About, Keeping};
use super::stored;
use crate::collect::own_plans;
use crate::inner::{blocking, with_causes};
use crate::landing::{self, AbandonedLanding};
use crate::landings::LandingState;
use crate::overlaps::Tell;
use crate::rescued::Source;
use crate::{
    Actor, Attempt, PlanError, RelPath, Repair, RepairEnd, Repaired, RescueReason, Rescued, RescuedKind,
    RescuedRecord, StuckLanding, Unapplied, Workspace, state, store, workspaces,
};

impl LandingQueue {
    /// Finishes an interrupted landing, or sets it aside.
    pub(crate) async fn repair(&mut self, how: Repair) -> Result<Repaired, PlanError> {
        let workspace = workspaces::get(&self.inner, self.id).await?;
        let plain = |end, rescued| Repaired {
            end,
            rescued,
            changed: Vec::new(),
        };
        let Some(id) = workspace.record.landing.clone() else {
            return Ok(plain(RepairEnd::Nothing, Vec::new()));
        };
        let error = match self.recover_landing(&workspace, &id).await {
            Ok(recovered) => {
                let end = match recovered.state {
                    LandingState::Done => RepairEnd::Finished,
                    _ => RepairEnd::TakenBack,
                };
                return Ok(plain(end, recovered.rescued));
            }
            Err(error @ (PlanError::LandingStuck { .. } | PlanError::WorkspaceGone { .. })) => error,
            Err(error) => return Err(error),
        };
        let stuck = self.what_is_stuck(&id, &error);
        match how {
            Repair::Recover => Ok(plain(RepairEnd::Stuck(stuck), Vec::new())),
            Repair::Abort => self.set_aside(&workspace, stuck).await,
        }
    }

    /// Frees a plan from an interrupted landing, so that it can be discarded.
    pub(crate) async fn release(&mut self, work: Unapplied) -> Result<(), PlanError> {
        let how = match work {
            Unapplied::Keep => Repair::Recover,
            Unapplied::GiveUp => Repair::Abort,
        };
        let workspace = workspaces::get(&self.inner, self.id).await?;
        match self.repair(how).await?.end {
            RepairEnd::Stuck(stuck) => Err(PlanError::LandingStuck {
                root: workspace.record.root,
                why: stuck.why,
            }),
            RepairEnd::Nothing | RepairEnd::Finished | RepairEnd::TakenBack | RepairEnd::SetAside(_) => {
                Ok(())
            }
        }
    }

    fn what_is_stuck(&self, id: &str, error: &PlanError) -> StuckLanding {
        self.inner.stuck.of(self.id).unwrap_or(StuckLanding {
            landing: id.to_owned(),
            what: None,
            plans: Vec::new(),
            since: None,
            why: with_causes(error),
        })
    }

    /// Keeps everything that a landing holds, records that it is abandoned, and removes the staged files.
    async fn set_aside(&self, workspace: &Workspace, stuck: StuckLanding) -> Result<Repaired, PlanError> {
        let begun = self.begun_before(workspace, &stuck.landing).await;
        let kept = match &begun {
            Ok(begun) => self.keep_rest(begun).await,
            Err(error) => Err(PlanError::Base(with_causes(error))),
        };
        let (rescued, changed) = match kept {
            Ok(kept) => kept,
            Err(PlanError::Closing) => return Err(PlanError::Closing),
            Err(error) => {
                tracing::warn!(landing = %stuck.landing, %error, "it is kept as it is staged");
                (self.keep_staged_whole(workspace, &stuck).await?, Vec::new())
            }
        };
        let plans = self.commit_set_aside(workspace, &stuck).await?;
        self.inner.stuck.set(self.id, None);
        for plan in plans {
            let republish = self
                .inner
                .at_plan(plan, |worker| Box::pin(worker.republish(Tell::Both)));
            republish.await?;
        }
        if let Ok(begun) = &begun
            && let Err(error) = self.remove_staged(begun).await
        {
            tracing::warn!(landing = %stuck.landing, %error, "what was staged stays behind");
        }
        self.remove_staged_by_name(workspace, &stuck.landing).await;
        Ok(Repaired {
            end: RepairEnd::SetAside(stuck),
            rescued,
            changed,
        })
    }

    /// Keeps, piece by piece, what exists only in the staging directory.
    async fn keep_rest(&self, begun: &ActiveLanding) -> Result<(Vec<Rescued>, Vec<RelPath>), PlanError> {
        let landing = begun.landing.clone();
        let about = About {
            why: Some(RescueReason::SetAside),
            ..self.about(begun)
        };
        let kept = self.at_site(&begun.target, move |inner, site| {
            let AbandonedLanding { kept, changed } = site.look_at_rest(&landing).map_err(land_error)?;
            let mut keeping = Keeping::new(inner.shelf(), about)?;
            keeping.keep_all(site, &landing.id, &kept)?;
            Ok((keeping.rescued, changed))
        });
        kept.await?
    }

    /// Keeps the staging directory in one piece, because the tree, the log or one of its notes can't be read.
    async fn keep_staged_whole(
        &self,
        workspace: &Workspace,
        stuck: &StuckLanding,
    ) -> Result<Vec<Rescued>, PlanError> {
        let name = format!("{}/{}", landing::INSIDE, stuck.landing);
        let record = RescuedRecord {
            workspace: self.id,
            root: workspace.record.root.display().to_string(),
            what: stuck.what.unwrap_or(Attempt::Apply),
            landing: stuck.landing.clone(),
            name: name.clone(),
            plans: stuck.plans.clone(),
            path: RelPath::from_bytes(name.as_bytes())?,
            kind: RescuedKind::Directory,
            entry: None,
            why: RescueReason::SetAside,
            since: self.inner.time.now(),
        };
        let places = self.staged_at(workspace, &stuck.landing);
        let shelf = self.inner.shelf();
        let kept = blocking(move || {
            let mut rescued = Vec::new();
            for place in places.iter().filter(|place| place.is_dir()) {
                let known = shelf.list()?.rescued;
                let shelved = shelf.put(&known, record.clone(), Source::At(place.clone()))?;
                rescued.push(shelved.into_rescued());
            }
            Ok(rescued)
        });
        kept.await?.map_err(PlanError::io("keeping what was staged"))
    }

    fn staged_at(&self, workspace: &Workspace, id: &str) -> [std::path::PathBuf; 2] {
        let inside = Path::new(landing::INSIDE).join(id);
        [self.inner.staging().join(id), workspace.record.root.join(inside)]
    }

    /// Removes the staged files. A failure is only logged: everything that matters in them is kept.
    async fn remove_staged_by_name(&self, workspace: &Workspace, id: &str) {
        let places = self.staged_at(workspace, id);
        let removed = blocking(move || {
            for place in places.iter().filter(|place| place.is_dir()) {
                if let Err(error) = std::fs::remove_dir_all(place) {
                    tracing::warn!(path = %place.display(), %error, "what was staged for a landing that was set aside stays behind");
                }
            }
        });
        if let Err(error) = removed.await {
            tracing::debug!(%error, "what was staged stays until the next start");
        }
    }

    /// One commit for the landing, the workspace, the plans and the parent.
    async fn commit_set_aside(
        &self,
        workspace: &Workspace,
        stuck: &StuckLanding,
    ) -> Result<Vec<PlanId>, PlanError> {
        let (now, id) = (self.inner.time.now(), stuck.landing.as_str());
        let mut writes = vec![workspace.with_landing(None).write(&[])?];
        let mut named: BTreeSet<PlanId> = own_plans(&self.inner).await?.iter().map(|plan| plan.id).collect();
        let by: Actor = match stored::read(&self.inner.log, id).await {
            Ok(mut landing) => {
                landing.record.state = LandingState::SetAside;
                named.extend(landing.record.plans.iter().copied().chain(landing.record.parent));
                writes.push(landing.write(&[])?);
                landing.record.by
            }
            // There is nothing to record it in.
            Err(_) => Arc::from("unknown"),
        };
        // Frees every plan that says it takes part, even if the landing itself can no longer be read.
        let mut freed = Vec::new();
        for plan in named {
            let mut plan = match store::plan(&self.inner.log, plan).await {
                Ok(plan) if plan.record.landing.as_deref() == Some(id) => plan,
                Ok(_) | Err(PlanError::NotFound(_)) => continue,
                Err(error) => return Err(error),
            };
            let (next, events) = state::set_aside(&plan.record, stuck.what, &by, &stuck.why, now);
            plan.record = next;
            writes.push(plan.write(&events)?);
            freed.push(plan.id);
        }
        self.inner.log.commit(Commit::all(writes)).await?;
        Ok(freed)
    }
}
