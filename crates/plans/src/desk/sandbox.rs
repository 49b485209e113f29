//! The sandbox of a plan, opened when it is needed.

use std::path::PathBuf;
use std::sync::Arc;

use super::Desk;
use super::open_sandboxes::{Listed, OpenSandboxes};
use crate::base::Base;
use crate::error::PlanError;
use crate::plan::{Plan, Record, State};
use crate::sandbox::{Known, Sandbox, SandboxOrder, Strategy};
use crate::shared::{Shared, blocking};

/// A sandbox that is open.
#[derive(Debug)]
pub(super) struct Open {
    /// Which sandbox of the plan it is.
    number: u32,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) base: Base,
    /// Lets others read it as long as the desk has it open.
    _listed: Listed,
}

/// What a plan's sandbox is made from.
pub(crate) fn order(shared: &Shared, plan: &Plan, base: Base) -> SandboxOrder {
    SandboxOrder {
        plan: plan.id,
        workspace: plan.record.facts.root.clone(),
        base,
        ignored: plan.record.ignored.clone(),
        directory: directory(shared, plan),
    }
}

/// Where a plan's sandbox is kept.
pub(crate) fn directory(shared: &Shared, plan: &Plan) -> PathBuf {
    shared
        .sandboxes()
        .join(plan.id.to_string())
        .join(plan.record.sandbox.to_string())
}

/// Takes a sandbox away, and the plan's place for sandboxes if it was the last one there. How many bytes that freed.
pub(crate) async fn remove(strategy: &dyn Strategy, order: &SandboxOrder) -> Result<u64, PlanError> {
    let freed = strategy.remove(order).await?;
    if let Some(place) = order.directory.parent().map(PathBuf::from) {
        // It is refused if the plan has another one, and that is well.
        drop(blocking(move || std::fs::remove_dir(place)).await?);
    }
    Ok(freed)
}

impl Desk {
    /// The sandbox, opened if need be. When it is opened for the first time in a life of the daemon, whatever is in it
    /// and was not recorded is recorded first.
    pub(super) async fn sandbox(&mut self) -> Result<Arc<dyn Sandbox>, PlanError> {
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
        let base = self.shared.base(plan.record.base).await?;
        let base = base.ok_or(PlanError::SandboxGone(self.id))?;
        let strategy = self.shared.strategies.get(plan.record.facts.strategy);
        let order = order(&self.shared, &plan, base.clone());
        let sandbox = strategy.open(&order).await?;
        self.open = Some(Open {
            number: plan.record.sandbox,
            _listed: OpenSandboxes::list(&self.shared.open_sandboxes, self.id, &sandbox),
            sandbox: Arc::clone(&sandbox),
            base,
        });
        self.record_leftovers(&plan.record).await?;
        Ok(sandbox)
    }

    /// The sandbox for somebody who looks.
    pub(crate) async fn look(&mut self) -> Result<Arc<dyn Sandbox>, PlanError> {
        self.sandbox().await
    }

    /// The sandbox, and what it is known to hold, for somebody who looks at all of it.
    pub(crate) async fn look_at_all(&mut self) -> Result<(Plan, Arc<dyn Sandbox>, Known), PlanError> {
        let sandbox = self.sandbox().await?;
        Ok((self.plan().await?, sandbox, self.known().await?))
    }

    /// Takes the sandbox away, if the plan is over. How many bytes that freed.
    pub(crate) async fn take_sandbox_away(&mut self) -> Result<u64, PlanError> {
        self.forget();
        let plan = self.plan().await?;
        let is_over = matches!(
            plan.record.state,
            State::Applied | State::Undone | State::Discarded
        );
        if !is_over
            || !plan.record.has_sandbox
            || !plan.record.running.is_empty()
            || plan.record.landing.is_some()
        {
            return Ok(0);
        }
        // First it is said that it is gone: a sandbox that is there in part is never opened.
        self.change(None, |_, record, _| {
            let mut next = record.clone();
            next.has_sandbox = false;
            Ok((next, Vec::new()))
        })
        .await?;
        self.open = None;
        let base = match self.shared.base(plan.record.base).await? {
            Some(base) => base,
            None => Base::outside(Arc::default(), PathBuf::new()),
        };
        let strategy = self.shared.strategies.get(plan.record.facts.strategy);
        remove(&*strategy, &order(&self.shared, &plan, base)).await
    }

    /// What the sandbox is known to hold.
    pub(super) async fn known(&mut self) -> Result<Known, PlanError> {
        let base = match &self.open {
            Some(open) => Arc::clone(&open.base.manifest),
            None => return Err(PlanError::SandboxGone(self.id)),
        };
        let since = Arc::new(self.loaded().await?.net.since());
        Ok(Known { base, since })
    }

    /// What a command of an earlier life, or a write that was not recorded before the daemon was killed, has left.
    async fn record_leftovers(&mut self, record: &Record) -> Result<(), PlanError> {
        if matches!(record.state, State::Open | State::Sealed) && record.landing.is_none() {
            // What commands of this life do is captured when they end.
            if record.running.is_empty() {
                self.capture(&super::capture::Doing::unknown()).await?;
            }
        }
        Ok(())
    }
}
