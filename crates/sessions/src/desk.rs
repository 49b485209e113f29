//! The plan that a turn works in, opened on first use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plans::{NewPlan, Plan, PlanError, PlanOrigin, Plans, Unapplied};
use protocol::{FinishThen, IfChildFails, PlanId, PlanState, SessionId, TurnId, TurnState};
use tokio::sync::OnceCell;

use crate::error::SessionError;
use crate::event::TurnEvent;
use crate::inner::SessionsInner;
use crate::session::{Actor, Session};
use crate::sink::Sink;
use crate::state::{Happening, alone};

/// How many paths are reported with a change.
const PATHS_TOLD: usize = 50;

/// The plan that a turn works in. A turn that only talks has none. Clones share the same desk.
#[derive(Clone, Debug)]
pub struct PlanDesk {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<SessionsInner>,
    session: SessionId,
    turn: TurnId,
    title: String,
    directory: PathBuf,
    /// The plan that the session names.
    given: Option<PlanId>,
    actor: Actor,
    sink: Sink,
    plan: OnceCell<(PlanId, Origin)>,
    /// Guards the fingerprint reported last; held to compare and update it.
    told: Mutex<Option<String>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Origin {
    /// The session already had it.
    Given,
    /// It was opened for this turn.
    Opened,
}

impl PlanDesk {
    pub(crate) fn new(
        shared: &Arc<SessionsInner>,
        session: &Session,
        turn: TurnId,
        sink: Sink,
        actor: Actor,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                shared: Arc::clone(shared),
                session: session.id,
                turn,
                title: session.record.title.clone(),
                directory: session.record.facts.directory.clone(),
                given: session.record.plan,
                actor,
                sink,
                plan: OnceCell::new(),
                told: Mutex::new(None),
            }),
        }
    }

    /// The session's plan, or a new one if it has none that is usable.
    ///
    /// *Cancel safety*: if dropped midway, a plan may have been opened; the next call finds it.
    pub async fn plan(&self) -> Result<PlanId, PlanError> {
        let (plan, _) = self.inner.plan.get_or_try_init(|| self.inner.open()).await?;
        Ok(*plan)
    }

    /// The session's plan, if it is usable. Never opens one.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn existing(&self) -> Result<Option<PlanId>, PlanError> {
        if let Some(plan) = self.opened() {
            return Ok(Some(plan));
        }
        Ok(self.inner.usable().await?.map(|plan| plan.id))
    }

    /// The plan, if one is already open.
    #[must_use]
    pub fn opened(&self) -> Option<PlanId> {
        self.inner.plan.get().map(|(plan, _)| *plan)
    }

    /// Tells the turn's stream what the plan changes now, if that differs from the last report. `paths` are
    /// those that were just changed.
    ///
    /// *Cancel safety*: if dropped midway, the change may not be reported.
    pub async fn tell_changes(&self, paths: Vec<String>) {
        if let Some(plan) = self.opened() {
            self.inner.tell(plan, paths).await;
        }
    }

    /// The plans, to read and write files in this one.
    #[must_use]
    pub fn plans(&self) -> &Plans {
        &self.inner.shared.plans
    }

    /// The directory of the session, in the workspace.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// The actor that the work belongs to.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Arc::clone(&self.inner.actor)
    }

    /// Called when the turn is about to end. Completed work waits for the user; a plan that was opened but not used is
    /// removed. Returns the plan that remains. A plan that can't be read remains too, since it may contain changes.
    pub(crate) async fn finish(&self, state: TurnState, then: Option<FinishThen>) -> Option<PlanId> {
        let (plan, origin) = self.inner.plan.get().copied()?;
        self.inner.tell(plan, Vec::new()).await;
        let plans = &self.inner.shared.plans;
        let found = match plans.get(plan).await {
            Ok(found) => found,
            Err(PlanError::NotFound(_)) => return None,
            Err(error) => {
                self.inner.not_finished(plan, &error).await;
                return Some(plan);
            }
        };
        let has_work = found.record.files > 0;
        let finished = match (has_work, origin) {
            (true, _) if then == Some(FinishThen::Keep) => Ok(()),
            (true, _) if state == TurnState::Done && found.record.state == PlanState::Open => {
                plans.seal(plan, self.actor(), None).await.map(drop)
            }
            (false, Origin::Opened) => {
                let discarded = plans.discard(plan, self.actor(), None, Unapplied::Keep).await;
                match discarded {
                    Ok(_) => {
                        // If the session still names a removed plan, it opens another one.
                        if let Err(error) = self.inner.name_plan(None).await {
                            tracing::warn!(%error, %plan, "a discarded plan is still named by its session");
                        }
                        return None;
                    }
                    Err(error) => Err(error),
                }
            }
            _ => Ok(()),
        };
        if let Err(error) = finished {
            self.inner.not_finished(plan, &error).await;
        }
        Some(plan)
    }
}

impl Inner {
    /// The plan that the session names, if it is usable.
    async fn usable(&self) -> Result<Option<Plan>, PlanError> {
        let Some(given) = self.given else {
            return Ok(None);
        };
        match self.shared.plans.get(given).await {
            // A plan with its sandbox on another machine is left to that machine.
            Ok(plan) if plan.record.facts.home != self.shared.owner.home => Ok(None),
            Ok(plan) if matches!(plan.record.state, PlanState::Open | PlanState::Sealed) => Ok(Some(plan)),
            Ok(_) | Err(PlanError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn open(&self) -> Result<(PlanId, Origin), PlanError> {
        if let Some(plan) = self.usable().await? {
            self.sink.set_plan(plan.id);
            self.remember(&plan.record.fingerprint.to_string());
            return Ok((plan.id, Origin::Given));
        }
        let opened = self
            .shared
            .plans
            .open_plan(NewPlan {
                on: PlanOrigin::Directory(self.directory.clone()),
                title: self.title.clone(),
                checks: Vec::new(),
                strategy: None,
                max_parallel: None,
                if_child_fails: IfChildFails::CarryOn,
                idempotency_key: Some(self.turn.to_string()),
                by: Arc::clone(&self.actor),
            })
            .await?;
        let plan = opened.plan.id;
        self.sink.set_plan(plan);
        self.remember(&opened.plan.record.fingerprint.to_string());
        // The next turn wouldn't find work in a plan that the session doesn't name. The next call opens the
        // same plan.
        self.name_plan(Some(plan)).await?;
        Ok((plan, Origin::Opened))
    }

    /// Reports in the turn that its plan could not be finished.
    async fn not_finished(&self, plan: PlanId, error: &PlanError) {
        tracing::warn!(%error, %plan, "the plan of a turn stays as it is");
        let text = format!("the plan {plan} could not be finished: {error}. What is in it is kept");
        // A turn that accepts nothing more is over.
        self.sink.trouble("plan_not_finished", text).await.ok();
    }

    /// Records in the session which plan its agents work in, if the turn is still the active one.
    async fn name_plan(&self, plan: Option<PlanId>) -> Result<(), PlanError> {
        let named = self.shared.change(self.session, |session| {
            let mut next = session.record.clone();
            next.plan = plan;
            next.changed_at = self.shared.wall.now();
            let text = plan.map(|plan| plan.to_string()).unwrap_or_default();
            let happened = Happening::new("plan_set", &self.actor, Some(self.turn), text);
            match session.record.active.as_ref().map(|active| active.turn) {
                Some(turn) if turn == self.turn => Ok(alone(next, happened)),
                _ => Err(SessionError::NotFound(self.session)),
            }
        });
        match named.await {
            Ok(_) | Err(SessionError::NotFound(_)) => Ok(()),
            Err(SessionError::Log(error)) => Err(error.into()),
            Err(SessionError::Commit(error)) => Err(error.into()),
            // Other writers always won the race, or the session can't be read: the log can't take this write
            // now.
            Err(error) => Err(eventlog::LogError::Engine(Arc::new(error)).into()),
        }
    }

    async fn tell(&self, plan: PlanId, mut paths: Vec<String>) {
        let found = match self.shared.plans.get(plan).await {
            Ok(found) => found,
            Err(error) => return tracing::warn!(%error, %plan, "the changes of a plan are not told"),
        };
        let fingerprint = found.record.fingerprint.to_string();
        if !self.remember(&fingerprint) {
            return;
        }
        paths.truncate(PATHS_TOLD);
        let told = self.sink.send(TurnEvent::PlanChanged {
            plan,
            fingerprint,
            files: found.record.files,
            changeset: None,
            paths,
        });
        // A turn that accepts nothing more is over.
        told.await.ok();
    }

    /// Stores the fingerprint, and returns whether it differs from the last one.
    fn remember(&self, fingerprint: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = told.as_deref() != Some(fingerprint);
        *told = Some(fingerprint.to_owned());
        is_new
    }
}
