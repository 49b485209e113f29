//! The landing queue of a workspace: everything that is carried out on it, one thing after the other.
//!
//! Applies, undos and refreshes of all plans of a workspace go through here, and so does taking bases, which must not see
//! an unfinished landing. The landing queue calls plan workers; they never call it, so there is no circular wait.
//!
//! A landing is written to the log and staged. It begins with one commit that all its plans and the workspace take part in,
//! is carried out, and ends with another such commit. If a plan has changed in between, the first commit fails and
//! everything is decided again; after it, no plan can change.

mod apply;
mod aside;
mod begin;
mod ends;
mod old;
mod outcome;
mod recover;
mod refresh;
mod remerge;
mod rescue;
mod restore;
mod stored;
mod target;

use std::sync::Arc;
use std::time::Duration;

use eventlog::UnixMs;
use protocol::{WorkspaceId, WorkspaceState};

use begin::land_error;
use target::LandingTarget;

use crate::base::{BaseSource, CachedScan, Retaken};
use crate::inner::{PlansInner, base_error, blocking, with_causes};
use crate::landing::Exchange;
use crate::{PlanError, Taken, Workspace, workspaces};

pub(crate) use old::{OldLandings, forget_landings};
pub(crate) use recover::{left_staged, never_begun};
pub(crate) use stored::LandingEvent;

/// How often a landing is decided again because a plan or a file has changed in the meantime.
const TRIES: usize = 6;

/// How long a scan of a workspace is cached, from when it was made and from its last use. Until then, a change that the
/// kernel doesn't report may be missed, and the workspace's manifest stays in memory.
pub(crate) const SCAN_KEPT_FOR: Duration = Duration::from_secs(10 * 60);
/// After a scan of this many files, memory is returned to the system.
const LARGE_TREE: usize = 10_000;

/// The notice for a workspace on a file system that can't exchange files.
const THREE_STEPS: &str = "its file system cannot exchange two files in one step: while a plan is applied or undone, a file \
     that is replaced is missing for an instant, and after a crash in that instant until the daemon starts again";

#[derive(Debug)]
pub(crate) struct LandingQueue {
    inner: Arc<PlansInner>,
    id: WorkspaceId,
    /// The last scan of the workspace, and when it was made.
    kept: Option<(CachedScan, UnixMs)>,
}

impl LandingQueue {
    pub(crate) fn new(inner: Arc<PlansInner>, id: WorkspaceId) -> Self {
        Self {
            inner,
            id,
            kept: None,
        }
    }

    async fn workspace(&self) -> Result<Workspace, PlanError> {
        let workspace = workspaces::get(&self.inner, self.id).await?;
        match workspace.presence {
            WorkspaceState::Present => Ok(workspace),
            WorkspaceState::Missing | WorkspaceState::Replaced | WorkspaceState::Unreachable => {
                Err(workspaces::gone(&workspace))
            }
        }
    }

    /// Takes a base of the current workspace. Nothing is being carried out on it in the meantime.
    pub(crate) async fn take_base(&mut self) -> Result<Taken, PlanError> {
        let workspace = self.workspace().await?;
        self.settle(&workspace).await?;
        self.probe(&workspace).await?;
        let (bases, scope) = (self.inner.bases.clone(), self.inner.scope.clone());
        let cache = self.inner.stat_cache(self.id);
        let now = self.inner.time.now();
        let is_young = |made: UnixMs| made <= now && now.since(made) < SCAN_KEPT_FOR;
        let (kept, made_at) = self.kept.take().filter(|(_, made)| is_young(*made)).unzip();
        let retaken =
            blocking(move || bases.take_again(&workspace.record.root, &cache, kept, &scope)).await?;
        let Retaken { taken, kept, look } = retaken.map_err(|error| base_error(&error))?;
        let made_at = made_at.filter(|_| look == BaseSource::CachedScan).unwrap_or(now);
        self.kept = kept.map(|kept| (kept, made_at));
        if look == BaseSource::FullScan && taken.base.manifest.len() > LARGE_TREE {
            self.inner.tasks.spawn("giving memory back", async {
                drop(blocking(process::give_memory_back).await);
            });
        }
        self.inner.settle_base(taken.base.clone());
        Ok(taken)
    }

    /// Checks once per daemon start whether files can be staged for the workspace and exchanged there. If not, plans
    /// can still be opened, but the user gets a notice.
    async fn probe(&self, workspace: &Workspace) -> Result<(), PlanError> {
        if self.inner.notices.of(self.id).is_some() {
            return Ok(());
        }
        let target = LandingTarget::Workspace(workspace.record.root.clone());
        let notice = match self.at_site(&target, |_, site| site.probe()).await? {
            Ok(Exchange::OneStep) => None,
            Ok(Exchange::ThreeSteps) => Some(THREE_STEPS.to_owned()),
            Err(error) => {
                let why = with_causes(&land_error(error));
                Some(format!("plans can be opened here but not applied: {why}"))
            }
        };
        self.inner.notices.set(self.id, Some(notice));
        Ok(())
    }
}
