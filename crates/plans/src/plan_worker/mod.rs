//! The worker of a plan: everything that is done to the plan, one thing after the other.
//!
//! The worker holds the plan's record, its net changes and its open sandbox. All three can be rebuilt from the log and
//! the disk at any time. Every change is a commit on the version that the worker saw. If someone else has changed the
//! plan (a landing does), the worker reads it again and decides again.

mod capture;
mod capture_tokens;
mod command_runs;
mod commands;
mod files;
mod forget;
mod open_sandboxes;
mod record;
mod sandbox;

use std::sync::Arc;

use eventlog::{Commit, CommitError, MaybeConflict, UnixMs, Version, Write};
use protocol::PlanId;

use crate::inner::PlansInner;
use crate::overlaps::Tell;
use crate::state::{Extent, Step};
use crate::{Actor, Attribution, Change, Net, Plan, PlanError, PlanEvent, PlanRecord, store};

pub use capture_tokens::CaptureHold;
pub(crate) use capture_tokens::CaptureTokens;
pub(crate) use command_runs::CommandRuns;
pub(crate) use commands::new_run_id;
pub(crate) use open_sandboxes::OpenSandboxes;
pub(crate) use record::RecordTo;
pub(crate) use sandbox::{directory as sandbox_directory, remove as remove_sandbox, spec as sandbox_spec};

/// How often a change is decided again because the plan has changed in the meantime. Only landings change it
/// behind the worker's back, twice each.
const TRIES: usize = 16;

#[derive(Debug)]
pub(crate) struct PlanWorker {
    inner: Arc<PlansInner>,
    id: PlanId,
    /// The plan from the log, and its net changes. Absent if it has to be read again.
    loaded: Option<(Plan, Net)>,
    open: Option<sandbox::OpenSandbox>,
}

/// A plan at one version, with its net changes in path order.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) plan: Plan,
    pub(crate) changes: Arc<Vec<Change>>,
}

impl PlanWorker {
    pub(crate) fn new(inner: Arc<PlansInner>, id: PlanId) -> Self {
        Self {
            inner,
            id,
            loaded: None,
            open: None,
        }
    }

    async fn loaded(&mut self) -> Result<&mut (Plan, Net), PlanError> {
        if self.loaded.is_none() {
            let plan = store::plan(&self.inner.log, self.id).await?;
            if plan.record.facts.home != self.inner.home_id {
                return Err(PlanError::Elsewhere {
                    plan: self.id,
                    home: plan.record.facts.home,
                });
            }
            let net = store::net(&self.inner.log, &plan).await?;
            self.loaded = Some((plan, net));
        }
        self.loaded.as_mut().ok_or(PlanError::NotFound(self.id))
    }

    /// Makes the worker read the log again before its next task.
    pub(crate) fn forget(&mut self) {
        self.loaded = None;
    }

    pub(crate) async fn plan(&mut self) -> Result<Plan, PlanError> {
        Ok(self.loaded().await?.0.clone())
    }

    pub(crate) async fn snapshot(&mut self) -> Result<Snapshot, PlanError> {
        self.forget();
        let (plan, net) = self.loaded().await?;
        Ok(Snapshot {
            plan: plan.clone(),
            changes: Arc::new(net.changes()),
        })
    }

    /// Decides on the next record and commits it. If the plan has changed in the meantime, `decide` is called again.
    pub(crate) async fn change(
        &mut self,
        seen: Option<u64>,
        decide: impl Fn(PlanId, &PlanRecord, UnixMs) -> Step + Send,
    ) -> Result<Plan, PlanError> {
        for _ in 0..TRIES {
            let (id, now) = (self.id, self.inner.time.now());
            let (plan, _) = self.loaded().await?;
            if seen.is_some_and(|seen| seen != plan.version.get()) {
                // The worker's copy may be outdated.
                self.forget();
                let actual = self.plan().await?.version.get();
                if seen != Some(actual) {
                    return Err(PlanError::Stale { plan: id, actual });
                }
                continue;
            }
            let (next, events) = decide(id, &plan.record, now)?;
            if events.is_empty() && next == plan.record {
                return Ok(plan.clone());
            }
            let is_other_state = next.state != plan.record.state;
            if self.commit(next, &events, Vec::new()).await? {
                if is_other_state {
                    self.publish(Tell::Both);
                }
                return self.plan().await;
            }
        }
        Err(PlanError::moving(self.id))
    }

    /// Commits the next record with its events and the other writes. Returns whether it did: if someone else has
    /// changed one of them, it didn't, and the plan is read again.
    async fn commit(
        &mut self,
        record: PlanRecord,
        events: &[PlanEvent],
        also: Vec<Write>,
    ) -> Result<bool, PlanError> {
        let log = self.inner.log.clone();
        let (plan, _) = self.loaded().await?;
        let mut next = Plan {
            record,
            ..plan.clone()
        };
        let mut writes = vec![next.write(events)?];
        writes.extend(also);
        let committed = next.commit(&log, Commit::all(writes)).await;
        match &committed {
            Ok(()) => *plan = next,
            // The loaded plan may be outdated.
            Err(error) if error.is_conflict() || error.may_be_made() => self.forget(),
            Err(_) => {}
        }
        match committed {
            Err(CommitError::Conflict { .. }) => Ok(false),
            committed => Ok(committed.map(|()| true)?),
        }
    }

    /// Moves the plan to another base that already has a new sandbox. `None` if the plan has changed since it was read.
    pub(crate) async fn refreshed(
        &mut self,
        by: Actor,
        seen: Version,
        mut next: PlanRecord,
        changes: Vec<Change>,
    ) -> Result<Option<Plan>, PlanError> {
        next.outdated_entries = next.entries;
        next.files = 0;
        next.fingerprint = store::fingerprint(&[])?;
        next.refused = None;
        next.changed_at = self.inner.time.now();
        let events = [PlanEvent::new(
            "refreshed",
            &by,
            "moved to the workspace's present state",
        )];
        if self.plan().await?.version != seen || !self.commit(next, &events, Vec::new()).await? {
            return Ok(None);
        }
        // From here on, the old changes no longer count. If the daemon stops before the new ones are
        // recorded, they are found in the sandbox.
        self.forget();
        self.open = None;
        if !changes.is_empty() {
            let new = Attribution {
                actor: by,
                tool: "refresh".to_owned(),
                reason: "the plan's changes on its new base".to_owned(),
                job: None,
            };
            self.record_all(new, changes).await?;
        }
        self.plan().await.map(Some)
    }

    /// Publishes the plan's net changes, as far as they are loaded.
    pub(crate) fn publish(&self, tell: Tell) {
        if let Some((plan, net)) = &self.loaded {
            self.inner.overlaps.publish(&self.inner, plan, net, tell);
        }
    }

    /// Reads the plan again, and publishes its net changes.
    pub(crate) async fn republish(&mut self, tell: Tell) -> Result<(), PlanError> {
        self.snapshot().await?;
        self.publish(tell);
        Ok(())
    }
}

/// The numbers about net changes in a plan's record.
fn extent(net: &Net) -> Result<Extent, PlanError> {
    let changes = net.changes();
    Ok(Extent {
        files: store::count_files(&changes),
        fingerprint: store::fingerprint(&changes)?,
    })
}
