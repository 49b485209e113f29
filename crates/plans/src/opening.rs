//! Opening a plan: a base, a sandbox on it, and then the plan itself.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Commit, Entity, EntityRecord, HeadsOrder, HeadsQuery, MaybeConflict, UnixMs};
use protocol::{PlanId, PlanState, WorkspaceId};

use crate::inner::{PlansInner, base_error, blocking};
use crate::overlaps::Tell;
use crate::plan_worker::{remove_sandbox, sandbox_spec};
use crate::streams::KeyRecord;
use crate::{
    Base, Check, Facts, Ignored, LeftOut, NewPlan, Opened, Plan, PlanError, PlanEvent, PlanOrigin,
    PlanRecord, Plans, base_request, collect, store, workspaces,
};

/// The longest title, in characters. It is shown in every list.
const TITLE_LIMIT_CHARS: usize = 200;

struct Beginning {
    workspace: WorkspaceId,
    root: PathBuf,
    depth: u16,
    base: Base,
    base_taken_at: Option<UnixMs>,
    ignored: Ignored,
    left_out: Vec<LeftOut>,
    checks: Vec<String>,
}

impl Plans {
    /// Opens a plan, or finds the one that was opened with the same key. If the future is dropped, the plan may or may
    /// not exist.
    pub async fn open_plan(&self, new: NewPlan) -> Result<Opened, PlanError> {
        self.open_as(new, None).await
    }

    /// Opens a plan for a command that is submitted as this job right after.
    pub async fn open_plan_for(&self, new: NewPlan, job: String) -> Result<Opened, PlanError> {
        self.open_as(new, Some(job)).await
    }

    async fn open_as(&self, new: NewPlan, command: Option<String>) -> Result<Opened, PlanError> {
        let inner = &self.inner;
        if let Some(key) = &new.idempotency_key
            && let Some(opened) = known(inner, key, &new).await?
        {
            return Ok(opened);
        }
        must_have_room(inner).await?;
        let beginning = match &new.on {
            PlanOrigin::Directory(directory) => on_workspace(inner, directory.clone()).await?,
            PlanOrigin::Plan(parent) => on_plan(inner, *parent).await?,
        };
        let (strategies, wanted, root) = (inner.strategies.clone(), new.strategy, beginning.root.clone());
        let strategy = blocking(move || strategies.pick(wanted, &root)).await??;
        let record = first_record(inner, &new, command, &beginning, strategy.name())?;
        let mut plan = Plan::new(next_id(inner).await?, record);
        let spec = sandbox_spec(inner, &plan, beginning.base);
        strategy.create(&spec).await?;
        let (made, made_by) = (spec.clone(), Arc::clone(&strategy));
        plan.record.remarks = blocking(move || made_by.remarks(&made)).await?;
        match commit(inner, &new, &mut plan).await {
            Ok(()) => {
                let publish = inner.at_plan(plan.id, |worker| Box::pin(worker.republish(Tell::Both)));
                publish.await?;
                Ok(Opened { plan, known: false })
            }
            // The plan may exist, and a retry finds it. If it doesn't, the next start removes its sandbox.
            Err(error) if error.may_be_done() => Err(error),
            Err(error) => {
                remove_sandbox(&*strategy, &spec).await?;
                match (error, &new.idempotency_key) {
                    // Another request has opened it at the same moment.
                    (error, Some(key)) if error.is_conflict() => {
                        known(inner, key, &new).await?.ok_or(PlanError::Closing)
                    }
                    (error, _) => Err(error),
                }
            }
        }
    }
}

/// An id that sorts after those of all existing plans. Lists, and requests for the newest plan, sort by id, and a clock
/// can be set back.
async fn next_id(inner: &PlansInner) -> Result<PlanId, PlanError> {
    let newest = inner.log.heads(HeadsQuery {
        kind: PlanRecord::KIND.into(),
        status: None,
        order: HeadsOrder::NewestFirst,
        after: None,
        limit: 1,
    });
    let newest = newest.await?;
    let newest = newest.first().and_then(|stored| Plan::id_of(&stored.stream));
    Ok(newest.map_or_else(PlanId::generate, PlanId::generate_after))
}

/// Makes room for another sandbox: at the limit, removes the oldest ones of plans that have ended. Refuses only if that
/// isn't enough.
async fn must_have_room(inner: &Arc<PlansInner>) -> Result<(), PlanError> {
    let Some(lack) = lack_of_room(inner).await? else {
        return Ok(());
    };
    let limit = match lack {
        // A few more than needed, so that not every plan from here on has to do this.
        Lack::Places { count, max } => count + 1 - max + max / 20,
        Lack::Disk { .. } => usize::MAX,
    };
    collect::make_room(inner, limit).await?;
    match lack_of_room(inner).await? {
        None => Ok(()),
        Some(Lack::Places { count, .. }) => Err(PlanError::NoRoom {
            why: format!(
                "{count} plans are open; list them with `tidelock plan list`, then apply or discard some"
            ),
        }),
        Some(Lack::Disk { free_bytes }) => {
            let mebibytes = free_bytes / (1024 * 1024);
            let why = format!("only {mebibytes} MiB are free on the disk");
            Err(PlanError::NoRoom { why })
        }
    }
}

/// What is lacking for another sandbox.
#[derive(Clone, Copy, Debug)]
enum Lack {
    Places { count: usize, max: usize },
    Disk { free_bytes: u64 },
}

async fn lack_of_room(inner: &PlansInner) -> Result<Option<Lack>, PlanError> {
    let (sandboxes, settings) = (inner.sandboxes(), inner.settings.clone());
    let looked = blocking(move || -> std::io::Result<Option<Lack>> {
        let (count, max) = (std::fs::read_dir(&sandboxes)?.count(), settings.max_sandboxes);
        if count >= max {
            return Ok(Some(Lack::Places { count, max }));
        }
        let found = rustix::fs::statvfs(&sandboxes)?;
        let free_bytes = found.f_bavail * found.f_frsize;
        Ok((free_bytes < settings.min_free_bytes).then_some(Lack::Disk { free_bytes }))
    });
    looked
        .await?
        .map_err(PlanError::io("looking for room for a sandbox"))
}

async fn known(inner: &Arc<PlansInner>, key: &str, new: &NewPlan) -> Result<Option<Opened>, PlanError> {
    let Some(key) = Entity::<KeyRecord>::read(&inner.log, KeyRecord::id_of(key)).await? else {
        return Ok(None);
    };
    let id = key.record.0;
    let plan = match store::plan(&inner.log, id).await {
        // The plan was forgotten, and so is the key: it can be used again.
        Err(PlanError::NotFound(_)) => {
            inner.log.remove(vec![key.at()?]).await?;
            return Ok(None);
        }
        found => found?,
    };
    let facts = &plan.record.facts;
    let is_same = match &new.on {
        PlanOrigin::Plan(parent) => facts.parent == Some(*parent),
        PlanOrigin::Directory(directory) => {
            let asked = directory.clone();
            let directory = blocking(move || asked.canonicalize().unwrap_or(asked)).await?;
            facts.parent.is_none() && directory.starts_with(&facts.root)
        }
    };
    if is_same && facts.title == title(&new.title) {
        Ok(Some(Opened { plan, known: true }))
    } else {
        Err(PlanError::KeyReused(id))
    }
}

async fn on_workspace(inner: &Arc<PlansInner>, directory: PathBuf) -> Result<Beginning, PlanError> {
    let workspace = workspaces::of_directory(inner, directory).await?;
    let began = inner.time.now();
    let taken = base_request::take_base(inner, workspace.id).await?;
    Ok(Beginning {
        workspace: workspace.id,
        root: workspace.record.root,
        depth: 0,
        base: taken.base,
        base_taken_at: Some(began),
        ignored: taken.ignored,
        left_out: taken.left_out,
        checks: workspace.record.checks,
    })
}

async fn on_plan(inner: &Arc<PlansInner>, parent: PlanId) -> Result<Beginning, PlanError> {
    let looked = inner.at_plan(parent, |worker| {
        Box::pin(async move {
            crate::state::may_work(worker.plan().await?.id, &worker.plan().await?.record)?;
            worker.catch_up().await?;
            Ok((worker.snapshot().await?, worker.sandbox().await?))
        })
    });
    let (snapshot, sandbox) = looked.await?;
    let record = snapshot.plan.record;
    let depth = record.facts.depth + 1;
    if depth > inner.settings.max_depth {
        return Err(PlanError::TooDeep {
            limit: inner.settings.max_depth,
        });
    }
    let base = inner
        .base(record.base)
        .await?
        .ok_or(PlanError::SandboxGone(parent))?;
    let base = if snapshot.changes.is_empty() {
        base
    } else {
        let (bases, scope, changes) = (inner.bases.clone(), inner.scope.clone(), snapshot.changes);
        let derived = blocking(move || {
            let read = |path: &crate::path::RelPath| Ok(sandbox.tree().open_file(path)?);
            bases.derive(&base, &changes, &read, &scope)
        });
        derived.await?.map_err(|error| base_error(&error))?
    };
    inner.settle_base(base.clone());
    Ok(Beginning {
        workspace: record.facts.workspace,
        root: record.facts.root,
        depth,
        base,
        base_taken_at: record.base_taken_at,
        ignored: record.ignored,
        left_out: record.left_out,
        checks: Vec::new(),
    })
}

fn title(wanted: &str) -> String {
    let line = wanted.lines().next().unwrap_or_default().trim();
    let title: String = line
        .chars()
        .filter(|character| !character.is_control())
        .take(TITLE_LIMIT_CHARS)
        .collect();
    if title.is_empty() {
        "untitled".to_owned()
    } else {
        title
    }
}

fn first_record(
    inner: &PlansInner,
    new: &NewPlan,
    command: Option<String>,
    beginning: &Beginning,
    strategy: protocol::SandboxStrategy,
) -> Result<PlanRecord, PlanError> {
    let now = inner.time.now();
    let mut checks: Vec<Check> = Vec::new();
    for command in beginning.checks.iter().chain(&new.checks) {
        if !checks.iter().any(|check| check.command == *command) {
            let command = command.clone();
            checks.push(Check { command, run: None });
        }
    }
    Ok(PlanRecord {
        facts: Facts {
            workspace: beginning.workspace,
            root: beginning.root.clone(),
            title: title(&new.title),
            opened_by: Arc::clone(&new.by),
            opened_at: now,
            parent: match new.on {
                PlanOrigin::Directory(_) => None,
                PlanOrigin::Plan(parent) => Some(parent),
            },
            depth: beginning.depth,
            strategy,
            home: inner.home_id,
            max_parallel: new.max_parallel,
            if_child_fails: new.if_child_fails,
            idempotency_key: new.idempotency_key.clone(),
            command,
        },
        state: PlanState::Open,
        changed_at: now,
        base: beginning.base.id,
        base_taken_at: beginning.base_taken_at,
        sandbox: 1,
        ignored: beginning.ignored.clone(),
        entries: 0,
        outdated_entries: 0,
        changesets: 0,
        open_changesets: Vec::new(),
        files: 0,
        fingerprint: store::fingerprint(&[])?,
        running: Vec::new(),
        checks,
        landing: None,
        landed: None,
        refused: None,
        left_out: beginning.left_out.clone(),
        remarks: Vec::new(),
        uncarried: Vec::new(),
        branches: Vec::new(),
        unrecorded: None,
        has_sandbox: true,
    })
}

async fn commit(inner: &PlansInner, new: &NewPlan, plan: &mut Plan) -> Result<(), PlanError> {
    let opened = PlanEvent::new("opened", &new.by, plan.record.facts.title.clone());
    let mut writes = vec![plan.write(&[opened])?];
    if let Some(key) = &new.idempotency_key {
        writes.push(Entity::new(KeyRecord::id_of(key), KeyRecord(plan.id)).write(&[])?);
    }
    Ok(plan.commit(&inner.log, Commit::all(writes)).await?)
}
