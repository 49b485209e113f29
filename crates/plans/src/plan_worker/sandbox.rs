//! The sandbox of a plan, opened on demand.

use std::path::PathBuf;
use std::sync::Arc;

use protocol::PlanState;

use super::PlanWorker;
use super::open_sandboxes::{Listed, OpenSandboxes};
use crate::inner::{PlansInner, blocking, with_causes};
use crate::{
    Attribution, Base, Known, Plan, PlanError, PlanRecord, Sandbox, SandboxSpec, Strategy, Unrecorded,
    remove_tree, state,
};

#[derive(Debug)]
pub(super) struct OpenSandbox {
    number: u32,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) base: Base,
    /// Lets others read it while the worker has it open.
    _listed: Listed,
}

pub(crate) fn spec(inner: &PlansInner, plan: &Plan, base: Base) -> SandboxSpec {
    SandboxSpec {
        plan: plan.id,
        workspace: plan.record.facts.root.clone(),
        base,
        ignored: plan.record.ignored.clone(),
        directory: directory(inner, plan),
    }
}

/// Where a plan's sandbox is kept.
pub(crate) fn directory(inner: &PlansInner, plan: &Plan) -> PathBuf {
    inner
        .sandboxes()
        .join(plan.id.to_string())
        .join(plan.record.sandbox.to_string())
}

/// Removes a sandbox, and the plan's sandbox directory if it was the last one. Returns how many bytes that freed.
pub(crate) async fn remove(strategy: &dyn Strategy, spec: &SandboxSpec) -> Result<u64, PlanError> {
    let freed = strategy.remove(spec).await?;
    if let Some(place) = spec.directory.parent().map(PathBuf::from) {
        // This fails if the plan has another one, which is fine.
        drop(blocking(move || std::fs::remove_dir(place)).await?);
    }
    Ok(freed)
}

impl PlanWorker {
    /// The sandbox, opened if needed. When it is first opened after a daemon start, unrecorded changes in it are
    /// recorded first.
    pub(crate) async fn sandbox(&mut self) -> Result<Arc<dyn Sandbox>, PlanError> {
        let plan = self.plan().await?;
        if let Some(open) = self
            .open
            .as_ref()
            .filter(|open| open.number == plan.record.sandbox)
        {
            return Ok(Arc::clone(&open.sandbox));
        }
        if !plan.record.has_sandbox {
            return Err(PlanError::SandboxGone(self.id));
        }
        let base = self.inner.base(plan.record.base).await?;
        let base = base.ok_or(PlanError::SandboxGone(self.id))?;
        let strategy = self.inner.strategies.get(plan.record.facts.strategy);
        let spec = spec(&self.inner, &plan, base.clone());
        let sandbox = strategy.open(&spec).await?;
        self.open = Some(OpenSandbox {
            number: plan.record.sandbox,
            _listed: OpenSandboxes::list(&self.inner.open_sandboxes, self.id, &sandbox),
            sandbox: Arc::clone(&sandbox),
            base,
        });
        self.record_leftovers(&plan.record).await?;
        Ok(sandbox)
    }

    /// Closes the sandbox, so that it is opened again, if the workspace directories that it shows no longer exist. It
    /// stays open while someone uses it.
    pub(super) async fn close_if_outdated(&mut self) -> Result<(), PlanError> {
        let Some(sandbox) = self.open.as_ref().map(|open| Arc::clone(&open.sandbox)) else {
            return Ok(());
        };
        if self.loaded().await?.0.record.running.is_empty() && !blocking(move || sandbox.is_current()).await?
        {
            self.open = None;
        }
        Ok(())
    }

    /// Whether the sandbox's directory and its base still exist.
    pub(super) async fn sandbox_is_there(&self, plan: &Plan) -> Result<bool, PlanError> {
        let place = directory(&self.inner, plan);
        let is_there = blocking(move || place.is_dir()).await?;
        Ok(is_there && self.inner.base(plan.record.base).await?.is_some())
    }

    pub(crate) async fn look_at_all(&mut self) -> Result<(Plan, Arc<dyn Sandbox>, Known), PlanError> {
        let sandbox = self.sandbox().await?;
        Ok((self.plan().await?, sandbox, self.known().await?))
    }

    /// Removes the sandbox if the plan has ended. Returns how many bytes that freed.
    pub(crate) async fn take_sandbox_away(&mut self) -> Result<u64, PlanError> {
        self.forget();
        let plan = self.plan().await?;
        let is_over = matches!(
            plan.record.state,
            PlanState::Applied | PlanState::Undone | PlanState::Discarded
        );
        if !is_over
            || !plan.record.has_sandbox
            || !plan.record.running.is_empty()
            || plan.record.landing.is_some()
        {
            return Ok(0);
        }
        // Record first that it is gone: a partially removed sandbox is never opened.
        self.change(None, |_, record, _| {
            let mut next = record.clone();
            next.has_sandbox = false;
            Ok((next, Vec::new()))
        })
        .await?;
        self.remove_sandbox(&plan).await
    }

    /// Removes the files of a sandbox that the log says is gone. Returns how many bytes that freed.
    pub(super) async fn remove_sandbox(&mut self, plan: &Plan) -> Result<u64, PlanError> {
        let base = match self.open.take() {
            Some(open) => {
                let base = open.base.clone();
                // This unmounts it, which takes the kernel a while.
                blocking(move || drop(open)).await?;
                Some(base)
            }
            None => self.inner.base(plan.record.base).await?,
        };
        let base = base.unwrap_or_else(|| Base::outside(Arc::default(), PathBuf::new()));
        let strategy = self.inner.strategies.get(plan.record.facts.strategy);
        remove(&*strategy, &spec(&self.inner, plan, base)).await
    }

    /// Removes the sandbox's files before the log records it, because the log can't be written. The sandbox is renamed
    /// first, so that it is never opened in part; if the daemon stops in between, the next one removes everything that
    /// doesn't belong to a plan.
    pub(super) async fn empty_sandbox(&mut self) -> Result<(), PlanError> {
        let plan = self.plan().await?;
        self.open = None;
        let place = self.inner.sandboxes().join(plan.id.to_string());
        let given_up = self.inner.sandboxes().join(format!("{}.given-up", plan.id));
        let removed = blocking(move || match std::fs::rename(&place, &given_up) {
            Ok(()) => remove_tree(&given_up).map(drop),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        });
        removed.await?.map_err(PlanError::io("taking the sandbox away"))
    }

    pub(super) async fn known(&mut self) -> Result<Known, PlanError> {
        let base = match &self.open {
            Some(open) => Arc::clone(&open.base.manifest),
            None => return Err(PlanError::SandboxGone(self.id)),
        };
        let since = Arc::new(self.loaded().await?.1.since());
        Ok(Known { base, since })
    }

    /// Records what a command of an earlier daemon has left, or a write that wasn't recorded before the daemon was
    /// killed. If that fails, the plan says so, and the sandbox can still be used, to find the cause and remove it.
    async fn record_leftovers(&mut self, record: &PlanRecord) -> Result<(), PlanError> {
        // The changes of this daemon's commands are captured when they end.
        if !matches!(record.state, PlanState::Open | PlanState::Sealed)
            || record.landing.is_some()
            || !record.running.is_empty()
        {
            return Ok(());
        }
        let by = match record.unrecorded.clone() {
            Some(failed) => failed.into(),
            // The daemon was killed before it could record who did it.
            None => Attribution::unknown("recovered", "found in the sandbox after the daemon had ended"),
        };
        let recorded = match self.capture(&by).await {
            Ok(_) => Ok(()),
            Err(PlanError::Closing) => return Err(PlanError::Closing),
            Err(error) => Err(Unrecorded::new(by, with_causes(&error))),
        };
        self.change(None, |_, record, now| {
            Ok(state::looked_at(record, recorded.clone(), now))
        })
        .await?;
        Ok(())
    }
}
