//! State that all parts of the service share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use eventlog::{Log, UnixMs, WallClock};
use kernel::{Clock, Scope};
use protocol::{HomeId, PlanId, WorkspaceId};

use process::Tasks;
use tokio::sync::oneshot;

use crate::base_request::Waiting;
use crate::landing::{Step, StepKind};
use crate::landing_queue::LandingQueue;
use crate::log_contents::LogContents;
use crate::overlaps::OverlapIndex;
use crate::plan_worker::{CaptureTokens, CommandRuns, OpenSandboxes, PlanWorker};
use crate::recovery_list::Recovering;
use crate::rescued::Shelf;
use crate::root_check::RootChecks;
use crate::state::Step as PlanStep;
use crate::workers::{Closed, Workers};
use crate::workspaces::Registry;
use crate::{
    Base, Bases, LandingSteps, ManifestId, Plan, PlanError, PlanRecord, PlansSettings, Strategies,
    StuckLanding,
};

pub(crate) type BoxFuture<'a, R> = Pin<Box<dyn Future<Output = Result<R, PlanError>> + Send + 'a>>;

/// Keeps a worker paused until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    _until_dropped: oneshot::Sender<()>,
}

/// State that all parts of the service share.
#[derive(Debug)]
pub(crate) struct PlansInner {
    pub(crate) log: Log,
    pub(crate) directory: PathBuf,
    pub(crate) home_id: HomeId,
    pub(crate) settings: PlansSettings,
    pub(crate) time: WallClock,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) bases: Bases,
    pub(crate) strategies: Strategies,
    pub(crate) contents: LogContents,
    pub(crate) overlaps: OverlapIndex,
    pub(crate) root_checks: RootChecks,
    pub(crate) waiting: Waiting,
    pub(crate) steps: LandingSteps,
    pub(crate) tasks: Tasks,
    pub(crate) scope: Scope,
    pub(crate) plan_workers: Workers<PlanId, PlanWorker>,
    pub(crate) open_sandboxes: Arc<OpenSandboxes>,
    pub(crate) command_runs: CommandRuns,
    pub(crate) captures: Arc<CaptureTokens>,
    pub(crate) landing_queues: Workers<WorkspaceId, LandingQueue>,
    pub(crate) recovering: Recovering,
    pub(crate) registry: Workers<(), Registry>,
    /// Landings that couldn't be finished at the last attempt.
    pub(crate) stuck: ByWorkspace<StuckLanding>,
    /// Which guarantees are weaker in a workspace, as text; `None` once we found that all hold.
    pub(crate) notices: ByWorkspace<Option<String>>,
}

/// Something that this daemon knows about some workspaces.
#[derive(Debug)]
pub(crate) struct ByWorkspace<T>(
    // Guards the map; held for one lookup or change.
    Mutex<HashMap<WorkspaceId, T>>,
);

impl<T> Default for ByWorkspace<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> ByWorkspace<T> {
    pub(crate) fn of(&self, workspace: WorkspaceId) -> Option<T> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&workspace).cloned()
    }

    pub(crate) fn set(&self, workspace: WorkspaceId, known: Option<T>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known {
            Some(known) => all.insert(workspace, known),
            None => all.remove(&workspace),
        };
    }
}

impl PlansInner {
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.directory.join("sandboxes")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.directory.join("staging")
    }

    /// Where other people's content is kept that can't stay in a workspace.
    pub(crate) fn shelf(&self) -> Shelf {
        Shelf::new(self.directory.join("kept"))
    }

    /// The file that caches the stat data of a workspace's files.
    pub(crate) fn stat_cache(&self, workspace: WorkspaceId) -> PathBuf {
        self.directory.join("workspaces").join(workspace.to_string())
    }

    pub(crate) async fn at_plan<R: Send + 'static>(
        self: &Arc<Self>,
        id: PlanId,
        work: impl for<'a> FnOnce(&'a mut PlanWorker) -> BoxFuture<'a, R> + Send + 'static,
    ) -> Result<R, PlanError> {
        let make = || PlanWorker::new(Arc::clone(self), id);
        self.plan_workers.run(id, make, work).await?
    }

    /// Decides on the next record of a plan and commits it, after everything requested of the plan before.
    pub(crate) async fn change_plan(
        self: &Arc<Self>,
        id: PlanId,
        decide: impl Fn(PlanId, &PlanRecord, UnixMs) -> PlanStep + Send + 'static,
    ) -> Result<Plan, PlanError> {
        self.at_plan(id, move |worker| Box::pin(worker.change(None, decide)))
            .await
    }

    /// Queues work for the worker of a plan without waiting for it.
    pub(crate) fn enqueue_at_plan(
        self: &Arc<Self>,
        id: PlanId,
        work: impl for<'a> FnOnce(&'a mut PlanWorker) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>
        + Send
        + 'static,
    ) {
        let make = || PlanWorker::new(Arc::clone(self), id);
        self.plan_workers.enqueue(&id, make, work);
    }

    /// Pauses the worker of a plan until the hold is dropped. Then it reads the log again.
    pub(crate) async fn hold(self: &Arc<Self>, id: PlanId) -> Result<Hold, PlanError> {
        let (begun, has_begun) = oneshot::channel();
        let (hold, released) = oneshot::channel();
        self.enqueue_at_plan(id, move |worker| {
            Box::pin(async move {
                if begun.send(()).is_err() {
                    return;
                }
                // Nothing is ever sent; the sender is dropped.
                drop(released.await);
                worker.forget();
            })
        });
        has_begun.await.map_err(|_| PlanError::Closing)?;
        Ok(Hold { _until_dropped: hold })
    }

    /// Runs something at the worker of a workspace. Everything that changes the workspace, or must not see it half
    /// changed, runs there.
    pub(crate) async fn at_workspace<R: Send + 'static>(
        self: &Arc<Self>,
        id: WorkspaceId,
        work: impl for<'a> FnOnce(&'a mut LandingQueue) -> BoxFuture<'a, R> + Send + 'static,
    ) -> Result<R, PlanError> {
        let make = || LandingQueue::new(Arc::clone(self), id);
        self.landing_queues.run(id, make, work).await?
    }

    pub(crate) async fn at_registry<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl for<'a> FnOnce(&'a mut Registry) -> BoxFuture<'a, R> + Send + 'static,
    ) -> Result<R, PlanError> {
        let make = || Registry::new(Arc::clone(self));
        self.registry.run((), make, work).await?
    }

    pub(crate) fn reached(&self, kind: StepKind) {
        self.steps.0.reached(Step { kind, path: None });
    }

    /// Makes a base survive a power loss, in the background.
    pub(crate) fn settle_base(&self, base: Base) {
        let bases = self.bases.clone();
        self.tasks.spawn("settling a base", async move {
            match blocking(move || bases.settle(&base)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a base may not survive a loss of power"),
                Err(error) => tracing::debug!(%error, "a base was not settled"),
            }
        });
    }

    pub(crate) async fn base(&self, id: ManifestId) -> Result<Option<Base>, PlanError> {
        let bases = self.bases.clone();
        blocking(move || bases.find(id))
            .await?
            .map_err(|error| base_error(&error))
    }
}

impl From<Closed> for PlanError {
    fn from(_: Closed) -> Self {
        Self::Closing
    }
}

pub(crate) fn base_error(error: &(dyn std::error::Error + 'static)) -> PlanError {
    PlanError::Base(with_causes(error))
}

/// An error with its causes, in one line.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// Runs blocking work where it doesn't hold up other tasks. *Cancel safety*: dropped halfway, the work continues.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, PlanError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| PlanError::Closing)
}
