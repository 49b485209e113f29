//! The worker of a plan: what is done to it, one thing after the other.
//!
//! The worker has the plan's record and what it differs in at hand, and its sandbox open. All three can be made again from
//! the log and the disk at any time. Every change is a commit on the version that the worker saw; if somebody else has
//! moved the plan (a landing does), the worker looks again and decides anew.

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

use eventlog::{Commit, CommitError, StreamId, UnixMs, Version, Write};
use protocol::PlanId;

use crate::inner::PlansInner;
use crate::overlaps::Tell;
use crate::state::{Extent, Step};
use crate::streams::{self, PlanEvent};
use crate::{Actor, Change, Net, NewChangeset, Plan, PlanError, Record, store};

pub use capture_tokens::CaptureHold;
pub(crate) use capture_tokens::CaptureTokens;
pub(crate) use command_runs::CommandRuns;
pub(crate) use commands::new_run_id;
pub(crate) use open_sandboxes::OpenSandboxes;
pub(crate) use record::RecordTo;
pub(crate) use sandbox::{directory as sandbox_directory, order as sandbox_order, remove as remove_sandbox};

/// How often a change is decided again because the plan has moved meanwhile. Only landings move it behind the worker's
/// back, twice each.
const TRIES: usize = 16;

#[derive(Debug)]
pub(crate) struct PlanWorker {
    inner: Arc<PlansInner>,
    id: PlanId,
    stream: Result<StreamId, ()>,
    /// What the log says, as far as is known.
    loaded: Option<Loaded>,
    open: Option<sandbox::Open>,
}

/// A plan at hand.
#[derive(Debug)]
struct Loaded {
    version: Version,
    record: Record,
    /// What it differs from its base in.
    net: Net,
}

/// A plan as it was at one version.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) plan: Plan,
    /// What it differs from its base in, in the order of paths.
    pub(crate) changes: Arc<Vec<Change>>,
}

impl PlanWorker {
    pub(crate) fn new(inner: Arc<PlansInner>, id: PlanId) -> Self {
        Self {
            inner,
            id,
            stream: streams::plan_stream(id).map_err(drop),
            loaded: None,
            open: None,
        }
    }

    fn stream(&self) -> Result<StreamId, PlanError> {
        self.stream.clone().map_err(|()| PlanError::NotFound(self.id))
    }

    /// The plan, read from the log if it is not at hand.
    async fn loaded(&mut self) -> Result<&mut Loaded, PlanError> {
        if self.loaded.is_none() {
            let plan = store::plan(&self.inner.log, self.id).await?;
            if plan.record.facts.home != self.inner.home_id {
                return Err(PlanError::Elsewhere {
                    plan: self.id,
                    home: plan.record.facts.home,
                });
            }
            let net = store::net(&self.inner.log, &plan).await?;
            self.loaded = Some(Loaded {
                version: plan.version,
                record: plan.record,
                net,
            });
        }
        self.loaded.as_mut().ok_or(PlanError::NotFound(self.id))
    }

    /// RootChecks at the log again before the next thing is done.
    pub(crate) fn forget(&mut self) {
        self.loaded = None;
    }

    pub(crate) async fn plan(&mut self) -> Result<Plan, PlanError> {
        let id = self.id;
        let loaded = self.loaded().await?;
        Ok(Plan {
            id,
            version: loaded.version,
            record: loaded.record.clone(),
        })
    }

    /// The plan and what it differs in, looked up anew.
    pub(crate) async fn snapshot(&mut self) -> Result<Snapshot, PlanError> {
        self.forget();
        let plan = self.plan().await?;
        let changes = Arc::new(self.loaded().await?.net.changes());
        Ok(Snapshot { plan, changes })
    }

    /// Makes one step. If the plan has moved meanwhile, it is decided again on what it is by then.
    pub(crate) async fn change(
        &mut self,
        seen: Option<u64>,
        decide: impl Fn(PlanId, &Record, UnixMs) -> Step + Send,
    ) -> Result<Plan, PlanError> {
        for _ in 0..TRIES {
            let (id, now) = (self.id, self.inner.time.now());
            let loaded = self.loaded().await?;
            if seen.is_some_and(|seen| seen != loaded.version.get()) {
                // It may be the worker that is behind.
                let actual = self.fresh_version().await?;
                if seen != Some(actual) {
                    return Err(PlanError::Stale { plan: id, actual });
                }
                continue;
            }
            let (next, events) = decide(id, &loaded.record, now)?;
            if events.is_empty() && next == loaded.record {
                return self.plan().await;
            }
            let is_other_state = next.state != loaded.record.state;
            match self.commit(next, events, Vec::new()).await {
                Ok(()) => {
                    if is_other_state {
                        self.publish();
                    }
                    return self.plan().await;
                }
                Err(PlanError::Commit(CommitError::Conflict { .. })) => self.forget(),
                Err(error) => return Err(error),
            }
        }
        Err(self.moving())
    }

    async fn fresh_version(&mut self) -> Result<u64, PlanError> {
        self.forget();
        Ok(self.loaded().await?.version.get())
    }

    fn moving(&self) -> PlanError {
        PlanError::Busy {
            plan: self.id,
            by: "it is being changed by somebody else all the time".to_owned(),
        }
    }

    /// Commits the next record with its events and the other writes.
    async fn commit(
        &mut self,
        next: Record,
        events: Vec<PlanEvent>,
        with: Vec<Write>,
    ) -> Result<(), PlanError> {
        let stream = self.stream()?;
        let loaded = self.loaded().await?;
        let mut writes = vec![Write {
            stream,
            expected: loaded.version,
            head: Some(streams::plan_head(&next)?),
            events: events.iter().map(PlanEvent::to_event).collect::<Result<_, _>>()?,
        }];
        writes.extend(with);
        let committed = self.inner.log.commit(Commit::all(writes)).await;
        if committed.as_ref().is_err_and(CommitError::may_be_made) {
            // What is loaded may be what the plan was before.
            self.forget();
        }
        let committed = committed?;
        if let (Some(loaded), Some(plan)) = (self.loaded.as_mut(), committed.first()) {
            loaded.version = plan.version;
            loaded.record = next;
        }
        Ok(())
    }

    /// Moves the plan to another base, on which a new sandbox is there already. `None` if the plan is no longer what was
    /// seen.
    pub(crate) async fn refreshed(
        &mut self,
        by: Actor,
        seen: Version,
        next: Record,
        changes: Vec<Change>,
    ) -> Result<Option<Plan>, PlanError> {
        let mut next = next;
        next.outdated_entries = next.entries;
        next.files = 0;
        next.fingerprint = store::fingerprint(&[])?;
        next.refused = None;
        next.changed_at = self.inner.time.now();
        if self.loaded().await?.version != seen {
            return Ok(None);
        }
        let events = vec![PlanEvent::new(
            "refreshed",
            &by,
            "moved to the workspace's present state",
        )];
        match self.commit(next, events, Vec::new()).await {
            Ok(()) => {}
            Err(PlanError::Commit(CommitError::Conflict { .. })) => {
                self.forget();
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        // From here on the old changes count no more. If the daemon ends before the new ones are recorded, they are found
        // in the sandbox.
        self.forget();
        self.open = None;
        if !changes.is_empty() {
            let new = NewChangeset {
                actor: by,
                tool: "refresh".to_owned(),
                reason: "the plan's changes on its new base".to_owned(),
                job: None,
            };
            let id = self.start_changeset(new).await?;
            self.record(RecordTo::Changeset(id), changes).await?;
            self.close_changeset(id).await?;
        }
        self.plan().await.map(Some)
    }

    /// Tells the others what the plan differs in now.
    pub(crate) fn publish(&self) {
        self.publish_to(Tell::Both);
    }

    /// The same at the start of a life, when everybody has been told before.
    fn publish_quietly(&self) {
        self.publish_to(Tell::Nobody);
    }

    /// RootChecks at the plan as it is, and tells what it differs in, at the start of a life.
    pub(crate) async fn tell_at_start(&mut self) -> Result<(), PlanError> {
        self.snapshot().await?;
        self.publish_quietly();
        Ok(())
    }

    fn publish_to(&self, tell: Tell) {
        if let Some(loaded) = &self.loaded {
            let differs = (&loaded.record, &loaded.net);
            self.inner.overlaps.publish(&self.inner, self.id, differs, tell);
        }
    }
}

/// What a plan differs in, by numbers.
fn extent(net: &Net) -> Result<Extent, PlanError> {
    let changes = net.changes();
    Ok(Extent {
        files: store::count_files(&changes),
        fingerprint: store::fingerprint(&changes)?,
    })
}
