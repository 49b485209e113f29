//! The service as everybody else sees it.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{HeadsOrder, HeadsQuery, Sequence, StreamChanges, Tail};
use kernel::{CancellationToken, Scope};
use protocol::{
    ChangesetId, ChangesetState, PlanCounts, PlanId, PlanOverlap, PlanState, PlansCollected, RescuedId,
    SandboxStrategy, WorkspaceId, WorkspaceState,
};

use crate::base_request::Waiting;
use crate::inner::{Notices, PlansInner, Stuck, base_error, blocking};
use crate::landing_queue::SCAN_KEPT_FOR;
use crate::log_contents::LogContents;
use crate::overlaps::OverlapIndex;
use crate::plan_worker::{CaptureTokens, CommandRuns};
use crate::recovery_list::Recovering;
use crate::root_check::RootChecks;
use crate::streams::{self, PLAN_KIND};
use crate::workers::{IDLE, Workers};
use crate::{
    Actor, ApplyRequest, Bases, CaptureHold, Change, ChangeFiles, Changeset, CheckEnd, CommandRun, Contents,
    Explorer, FileFound, FilesChanged, Forgotten, GcPolicy, LandingOutcome, Moment, NewChangeset,
    NewCommandRun, NewPlan, Opened, Plan, PlanError, PlanExecutionContext, PlanQuery, PlansOptions,
    Recovered, Recovery, RelPath, Repair, Repaired, Rescued, RescuedList, RestoreRequest, Restored,
    SandboxView, Strategies, StuckLanding, UndoRequest, Workspace, collect, explore, fold, forget, opening,
    recover, sandbox_read, sandbox_view, state, store, workspaces,
};

/// How many plans are looked at for one page of a list at most.
const PAGE: u32 = 256;

/// The plans of a log. Clones are the same service.
#[derive(Clone, Debug)]
pub struct Plans {
    pub(crate) inner: Arc<PlansInner>,
    /// Cancels what reads trees when the last handle goes or the service is closed.
    reading: CancellationToken,
}

impl Plans {
    /// Opens the plans of a log, and begins to set right what an earlier life left half-way. Whoever wants something of
    /// such a plan or workspace waits for that; everybody else does not. What was done is said in the notes.
    /// *Cancel safety*: dropped half-way, the rest is set right the next time.
    ///
    /// # Errors
    /// The directory cannot be used, or the log failed.
    pub async fn open(options: PlansOptions) -> Result<(Self, Recovered), PlanError> {
        let PlansOptions {
            log,
            directory,
            guarded,
            home_id,
            processes,
            environment,
            settings,
            tasks,
            clock,
            steps,
        } = options;
        let made = directory.clone();
        let (quota, max_file_bytes) = (settings.base_quota_bytes, settings.max_file_bytes);
        let opened = blocking(move || {
            recover::make_directories(&made)?;
            Bases::open_within(made.join("bases"), quota, max_file_bytes).map_err(|error| base_error(&error))
        });
        let bases = opened.await??;
        let directory = directory.canonicalize().unwrap_or(directory);
        let strategies = Strategies::probe(&processes, &directory, &guarded, &environment).await?;
        let reading = CancellationToken::new();
        let inner = Arc::new(PlansInner {
            contents: LogContents::new(log.clone()),
            overlaps: OverlapIndex::new(&tasks, &clock),
            looks: RootChecks::new(Arc::clone(&clock)),
            waiting: Waiting::default(),
            time: log.wall_clock(Arc::clone(&clock)),
            clock: Arc::clone(&clock),
            scope: reading.scope(),
            plan_workers: Workers::new("plan", tasks.clone(), Arc::clone(&clock), IDLE),
            open_sandboxes: Arc::default(),
            command_runs: CommandRuns::default(),
            captures: Arc::new(CaptureTokens::below(&reading)),
            landing_queues: Workers::new("workspace", tasks.clone(), Arc::clone(&clock), SCAN_KEPT_FOR),
            registry: Workers::new("workspaces", tasks.clone(), clock, IDLE),
            recovering: Recovering::default(),
            steps,
            stuck: Stuck::default(),
            notices: Notices::default(),
            log,
            directory,
            home_id,
            settings,
            bases,
            strategies,
            tasks,
        });
        let recovered = recover::begin(&inner).await?;
        Ok((Self { inner, reading }, recovered))
    }

    /// Opens a plan. *Cancel safety*: dropped half-way, it may or may not be there.
    ///
    /// # Errors
    /// The directory is no workspace, or there is no sandbox for it.
    pub async fn open_plan(&self, new: NewPlan) -> Result<Opened, PlanError> {
        opening::open_plan(&self.inner, new, None).await
    }

    /// The same for a command, which is submitted as this job right after. *Cancel safety*: as for
    /// [`open_plan`](Self::open_plan).
    ///
    /// # Errors
    /// As for [`open_plan`](Self::open_plan).
    pub async fn open_plan_for(&self, new: NewPlan, job: String) -> Result<Opened, PlanError> {
        opening::open_plan(&self.inner, new, Some(job)).await
    }

    /// A plan. *Cancel safety*: may be dropped; so it is with all that only read.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn get(&self, id: PlanId) -> Result<Plan, PlanError> {
        let plan = store::plan(&self.inner.log, id).await?;
        Ok(self.seen(plan))
    }

    /// A plan as it is shown: of our own home it is known which commands are over.
    fn seen(&self, plan: Plan) -> Plan {
        if plan.record.facts.home == self.inner.home_id {
            self.inner.command_runs.seen(plan)
        } else {
            plan
        }
    }

    /// Plans, newest first.
    ///
    /// # Errors
    /// The log failed.
    pub async fn list(&self, query: PlanQuery) -> Result<Vec<Plan>, PlanError> {
        let [_, _, ..] = query.states.as_slice() else {
            return self.list_in(query.states.first().copied(), &query).await;
        };
        // The log lists one state at the cost of what it lists. All of them together would be read to find a few.
        let mut found = Vec::new();
        for state in &query.states {
            found.append(&mut self.list_in(Some(*state), &query).await?);
        }
        found.sort_by_key(|plan| std::cmp::Reverse(plan.id));
        // One that moved from one state to the other meanwhile is there twice.
        found.dedup_by_key(|plan| plan.id);
        found.truncate(query.limit as usize);
        Ok(found)
    }

    /// Plans in one state, or in any, newest first.
    async fn list_in(&self, state: Option<PlanState>, query: &PlanQuery) -> Result<Vec<Plan>, PlanError> {
        let mut found = Vec::new();
        let mut after = query.before.map(streams::plan_stream).transpose()?;
        loop {
            let page = HeadsQuery {
                kind: Arc::from(PLAN_KIND),
                status: state.map(|state| Arc::from(state.as_str())),
                order: HeadsOrder::NewestFirst,
                after: after.take(),
                limit: PAGE,
            };
            let heads = self.inner.log.heads(page).await?;
            for stored in &heads {
                let Some(plan) = self.inner.log.readable(stored, streams::plan_of(stored)) else {
                    continue;
                };
                // A child is younger than its parent, so there are no more from here on.
                if query.parent.is_some_and(|parent| plan.id < parent) {
                    return Ok(found);
                }
                let facts = &plan.record.facts;
                let is_wanted = query
                    .workspace
                    .is_none_or(|workspace| facts.workspace == workspace)
                    && query.parent.is_none_or(|parent| facts.parent == Some(parent));
                if is_wanted {
                    found.push(self.seen(plan));
                }
                if found.len() >= query.limit as usize {
                    return Ok(found);
                }
            }
            if heads.len() < PAGE as usize {
                return Ok(found);
            }
            after = heads.last().map(|stored| stored.stream.clone());
        }
    }

    /// What an earlier life left half-way and is being set right.
    #[must_use]
    pub fn recovering(&self) -> Vec<Recovery> {
        self.inner.recovering.list()
    }

    /// How many plans there are, as this daemon knows it.
    #[must_use]
    pub fn counts(&self) -> PlanCounts {
        self.inner.overlaps.counts()
    }

    /// The other open plans of the workspace that touch the same files, as far as is known by now.
    #[must_use]
    pub fn overlaps(&self, id: PlanId) -> Vec<PlanOverlap> {
        self.inner.overlaps.of(id)
    }

    /// Where a command in the sandbox finds the workspace.
    #[must_use]
    pub fn sandbox_root(&self, plan: &Plan) -> PathBuf {
        match plan.record.facts.strategy {
            SandboxStrategy::Overlay => plan.record.facts.root.clone(),
            SandboxStrategy::GitWorktree | SandboxStrategy::Copy => {
                crate::plan_worker::sandbox_directory(&self.inner, plan).join("tree")
            }
        }
    }

    /// The changesets of a plan, oldest first, without their changes.
    ///
    /// # Errors
    /// There is no such plan.
    pub async fn changesets(&self, id: PlanId) -> Result<Vec<Changeset>, PlanError> {
        let plan = self.get(id).await?;
        let mut changesets = store::changesets(&self.inner.log, id).await?;
        for changeset in &mut changesets {
            settle(&plan, changeset);
        }
        Ok(changesets)
    }

    /// One changeset with its changes.
    ///
    /// # Errors
    /// There is none of this id in the plan.
    pub async fn changeset(&self, id: PlanId, changeset: ChangesetId) -> Result<Changeset, PlanError> {
        let plan = self.get(id).await?;
        let mut changeset = store::changeset(&self.inner.log, id, changeset).await?;
        settle(&plan, &mut changeset);
        Ok(changeset)
    }

    /// The plan, as one actor works in it.
    ///
    /// # Errors
    /// There is no such plan.
    pub async fn context(&self, plan: PlanId, actor: Actor) -> Result<PlanExecutionContext, PlanError> {
        self.get(plan).await?;
        Ok(PlanExecutionContext {
            inner: Arc::clone(&self.inner),
            plan,
            actor,
        })
    }

    /// Starts a changeset, which is its actor's current one from then on. *Cancel safety*: dropped half-way, it may or
    /// may not be started.
    ///
    /// # Errors
    /// The plan takes no changes.
    pub async fn start_changeset(&self, plan: PlanId, new: NewChangeset) -> Result<Changeset, PlanError> {
        let id = self
            .inner
            .at_plan(plan, move |worker| Box::pin(worker.start_changeset(new)))
            .await?;
        self.changeset(plan, id).await
    }

    /// Closes a changeset; one that is closed stays so. *Cancel safety*: dropped half-way, it may or may not be closed.
    ///
    /// # Errors
    /// There is none of this id in the plan.
    pub async fn close_changeset(&self, plan: PlanId, id: ChangesetId) -> Result<Changeset, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.close_changeset(id)))
            .await?;
        self.changeset(plan, id).await
    }

    /// Writes to the sandbox and records it. *Cancel safety*: dropped half-way, what was written is recorded all the
    /// same.
    ///
    /// # Errors
    /// The plan takes no changes, or its sandbox cannot be opened.
    pub async fn change_files(&self, plan: PlanId, order: ChangeFiles) -> Result<FilesChanged, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.change_files(order)))
            .await
    }

    /// What is at a path of the sandbox, or at its root.
    ///
    /// # Errors
    /// There is nothing, or it leads out of the sandbox.
    pub async fn read_file(&self, plan: PlanId, path: Option<RelPath>) -> Result<FileFound, PlanError> {
        let sandbox = match self.inner.open_sandboxes.get(plan) {
            Some(sandbox) => sandbox,
            None => self.inner.at_plan(plan, |worker| Box::pin(worker.look())).await?,
        };
        // Agents read all day, and to wake a thread takes longer than to read a small file.
        if let Some((entry, content)) = path.as_ref().and_then(|path| sandbox.tree().file_at_hand(path)) {
            return Ok(FileFound::File { entry, content });
        }
        blocking(move || sandbox_read::read(sandbox.tree(), path.as_ref())).await?
    }

    /// RootChecks through the files of the sandbox, on a thread where that may block. *Cancel safety*: dropped half-way, what
    /// looks goes on until it is done; it changes nothing.
    ///
    /// # Errors
    /// The sandbox cannot be opened, or what is ignored in it cannot be read.
    pub async fn explore<R: Send + 'static>(
        &self,
        plan: PlanId,
        look: impl FnOnce(&mut Explorer<'_, '_>) -> R + Send + 'static,
    ) -> Result<R, PlanError> {
        let sandbox = self.inner.at_plan(plan, |worker| Box::pin(worker.look())).await?;
        blocking(move || explore::explore(sandbox.as_ref(), look)).await?
    }

    /// Opens the sandbox for somebody who looks at all of it, from many threads at once. What its actor has written and nobody
    /// has recorded yet is seen too. *Cancel safety*: may be dropped; it changes nothing.
    ///
    /// # Errors
    /// The sandbox cannot be opened or read.
    pub async fn look(&self, plan: PlanId) -> Result<SandboxView, PlanError> {
        sandbox_view::look(&self.inner, plan).await
    }

    /// The root of the tree that a directory is in, for somebody who only looks: a workspace, a repository of git, or the
    /// directory itself. Nothing is registered, and one inside another is in nobody's way; the inner one counts.
    ///
    /// # Errors
    /// There is no such directory, or the daemon keeps its own files in it.
    pub async fn root_of(&self, directory: PathBuf) -> Result<PathBuf, PlanError> {
        sandbox_view::root_of(&self.inner, directory).await
    }

    /// What the plan changes altogether, in the order of paths; or what one changeset did.
    ///
    /// # Errors
    /// There is no such plan or changeset.
    pub async fn changes(&self, id: PlanId, of: Option<ChangesetId>) -> Result<Vec<Change>, PlanError> {
        let plan = self.get(id).await?;
        match of {
            None => Ok(store::net(&self.inner.log, &plan).await?.changes()),
            Some(changeset) => {
                let changeset = store::changeset(&self.inner.log, id, changeset).await?;
                Ok(fold(changeset.changes.iter().map(|recorded| &recorded.change)))
            }
        }
    }

    /// Where the contents of changes are found. It blocks, and may be used from blocking tasks only.
    #[must_use]
    pub fn contents(&self) -> Arc<dyn Contents> {
        Arc::new(self.inner.contents.clone())
    }

    /// Says that the work is done. *Cancel safety*: dropped half-way, it goes on; so it is with all changes of a plan.
    ///
    /// # Errors
    /// A command runs in it, or it is over.
    pub async fn seal(&self, plan: PlanId, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.seal(by, seen)))
            .await
    }

    /// Moves an open plan's sandbox to the workspace's present state.
    ///
    /// # Errors
    /// A command runs in it, or it is over. That both changed the same place is an outcome.
    pub async fn refresh(
        &self,
        plan: PlanId,
        by: Actor,
        seen: Option<u64>,
    ) -> Result<LandingOutcome, PlanError> {
        let workspace = self.get(plan).await?.record.facts.workspace;
        self.inner
            .at_workspace(workspace, move |queue| Box::pin(queue.refresh(plan, by, seen)))
            .await
    }

    /// Applies plans: all of them or none. *Cancel safety*: dropped half-way, it goes on.
    ///
    /// # Errors
    /// A command runs in one, a check has not passed, or they do not belong together. A conflict is an outcome.
    pub async fn apply(&self, mut order: ApplyRequest) -> Result<LandingOutcome, PlanError> {
        let mut seen = std::collections::HashSet::new();
        order.plans.retain(|plan| seen.insert(*plan));
        let first = *order.plans.first().ok_or(PlanError::NotTogether)?;
        let workspace = self.get(first).await?.record.facts.workspace;
        self.inner
            .at_workspace(workspace, move |queue| Box::pin(queue.apply(order)))
            .await
    }

    /// Takes an applied plan back, or one changeset of it. *Cancel safety*: dropped half-way, it goes on.
    ///
    /// # Errors
    /// It is not applied. A conflict is an outcome.
    pub async fn undo(&self, order: UndoRequest) -> Result<LandingOutcome, PlanError> {
        let workspace = self.get(order.plan).await?.record.facts.workspace;
        self.inner
            .at_workspace(workspace, move |queue| Box::pin(queue.undo(order)))
            .await
    }

    /// Adds checks to a plan.
    ///
    /// # Errors
    /// It has too many.
    pub async fn add_checks(&self, plan: PlanId, commands: Vec<String>) -> Result<Plan, PlanError> {
        let added = self.inner.at_plan(plan, move |worker| {
            Box::pin(async move {
                let add = |plan, record: &_, now| state::add_checks(plan, record, commands.clone(), now);
                worker.change(None, add).await
            })
        });
        added.await
    }

    /// A check is about to run as a job. If that job is the last run of it already, nothing happens.
    ///
    /// # Errors
    /// The plan is over, or is being applied.
    pub async fn check_started(
        &self,
        plan: PlanId,
        by: Actor,
        command: String,
        job: String,
    ) -> Result<Plan, PlanError> {
        let started = self.inner.at_plan(plan, move |worker| {
            Box::pin(async move {
                let start =
                    |plan, record: &_, now| state::check_started(plan, record, (&command, &job), &by, now);
                worker.change(None, start).await
            })
        });
        started.await
    }

    /// A check has ended. One that is no longer the last run of its command, or has ended before, changes nothing.
    ///
    /// # Errors
    /// The log failed.
    pub async fn check_ended(
        &self,
        plan: PlanId,
        by: Actor,
        (command, job): (String, String),
        end: CheckEnd,
    ) -> Result<Plan, PlanError> {
        let ended = self.inner.at_plan(plan, move |worker| {
            Box::pin(async move {
                let end = |_, record: &_, now| {
                    Ok(state::check_ended(
                        record,
                        (&command, &job),
                        end.clone(),
                        &by,
                        now,
                    ))
                };
                worker.change(None, end).await
            })
        });
        ended.await
    }

    /// A command is about to run in the sandbox.
    ///
    /// # Errors
    /// The plan is over, or its sandbox cannot be opened.
    pub async fn begin_command(&self, plan: PlanId, new: NewCommandRun) -> Result<CommandRun, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.begin_command(new)))
            .await
    }

    /// Nothing of the command runs any more: what it changed is captured and recorded as its actor's. The changeset, if
    /// there was anything.
    ///
    /// # Errors
    /// The sandbox cannot be read, or the log failed.
    pub async fn end_command(&self, run_id: &CommandRun) -> Result<Option<Changeset>, PlanError> {
        let id = run_id.id.clone();
        self.inner
            .at_plan(run_id.plan, move |worker| {
                Box::pin(async move { worker.end_command(&id).await })
            })
            .await
    }

    /// The workspaces, by path.
    ///
    /// # Errors
    /// The log failed.
    pub async fn workspaces(&self) -> Result<Vec<Workspace>, PlanError> {
        workspaces::list(&self.inner).await
    }

    /// Whether a workspace is there; nothing if there is none of this id. No other one is looked at.
    ///
    /// # Errors
    /// The log failed.
    pub async fn presence(&self, id: WorkspaceId) -> Result<Option<WorkspaceState>, PlanError> {
        workspaces::presence(&self.inner, id).await
    }

    /// An apply or undo of a workspace that was left half-way and could not be brought to an end when that was last tried.
    #[must_use]
    pub fn stuck_landing(&self, id: WorkspaceId) -> Option<StuckLanding> {
        self.inner.stuck.of(id)
    }

    /// What is weaker in a workspace than elsewhere, as far as it was found out in this life of the daemon.
    #[must_use]
    pub fn workspace_notice(&self, id: WorkspaceId) -> Option<String> {
        self.inner.notices.of(id).flatten()
    }

    /// Brings an apply or undo to its end that was left half-way on a workspace, or sets it aside. *Cancel safety*: dropped
    /// half-way, it goes on.
    ///
    /// # Errors
    /// There is no workspace of this id, or the log failed. That it cannot be brought to an end is an answer.
    pub async fn repair_workspace(&self, id: WorkspaceId, how: Repair) -> Result<Repaired, PlanError> {
        self.inner
            .at_workspace(id, move |queue| Box::pin(queue.repair(how)))
            .await
    }

    /// Content of users that applies and undos had to keep, newest first.
    ///
    /// # Errors
    /// The directory that it is kept in cannot be read.
    pub async fn rescued(&self) -> Result<RescuedList, PlanError> {
        let shelf = self.inner.shelf();
        let list = blocking(move || shelf.list()).await?;
        list.map_err(|source| PlanError::Io {
            what: "listing rescued content".to_owned(),
            source,
        })
    }

    /// Puts rescued content back into its workspace. *Cancel safety*: dropped half-way, it goes on.
    ///
    /// # Errors
    /// There is none of this id, its workspace is gone, or something is at the path.
    pub async fn restore_rescued(&self, order: RestoreRequest) -> Result<Restored, PlanError> {
        let rescued = self.rescued_of(order.id).await?;
        self.inner
            .at_workspace(rescued.record.workspace, move |queue| {
                Box::pin(queue.restore(rescued, order))
            })
            .await
    }

    /// Removes rescued content for good.
    ///
    /// # Errors
    /// There is none of this id, or it cannot be removed.
    pub async fn drop_rescued(&self, id: RescuedId) -> Result<Rescued, PlanError> {
        let rescued = self.rescued_of(id).await?;
        let shelf = self.inner.shelf();
        let removed = blocking(move || shelf.remove(id)).await?;
        removed.map_err(|source| PlanError::Io {
            what: format!("removing {}", rescued.at.display()),
            source,
        })?;
        Ok(rescued)
    }

    async fn rescued_of(&self, id: RescuedId) -> Result<Rescued, PlanError> {
        let shelf = self.inner.shelf();
        let found = blocking(move || shelf.read(id)).await?;
        let found = found.map_err(|source| PlanError::Io {
            what: format!("reading the record of {id}"),
            source,
        })?;
        found.ok_or(PlanError::RescuedNotFound(id))
    }

    /// Forgets a workspace that has no plans that are not over. An undo that is stuck there is set aside first.
    ///
    /// # Errors
    /// There is none of this id, or it has such plans.
    pub async fn forget_workspace(&self, id: WorkspaceId) -> Result<(), PlanError> {
        let workspace = workspaces::get(&self.inner, id).await?;
        if workspace.record.landing.is_some() && workspace.open_plans == 0 {
            self.repair_workspace(id, Repair::Abort).await?;
        }
        self.inner
            .at_registry(move |registry| Box::pin(registry.forget(id)))
            .await
    }

    /// Sets the commands that every new plan of a workspace must pass.
    ///
    /// # Errors
    /// There is none of this id.
    pub async fn set_workspace_checks(
        &self,
        id: WorkspaceId,
        checks: Vec<String>,
    ) -> Result<Workspace, PlanError> {
        self.inner
            .at_registry(move |registry| Box::pin(registry.set_checks(id, checks)))
            .await
    }

    /// Takes sandboxes away that nobody needs. One with unapplied work never goes. *Cancel safety*: dropped half-way,
    /// the rest is collected the next time.
    ///
    /// # Errors
    /// The log failed, or a sandbox cannot be taken away.
    pub async fn collect(&self, policy: GcPolicy) -> Result<PlansCollected, PlanError> {
        collect::collect(&self.inner, policy).await
    }

    /// Forgets a plan that is over, for good: what was changed in it, the contents that nobody else has, and what an
    /// apply of it did. It can no longer be undone. *Cancel safety*: dropped half-way, it can be forgotten again.
    ///
    /// # Errors
    /// It is open or sealed, something runs in it, or an open plan merges into it.
    pub async fn forget(&self, plan: PlanId, by: Actor, seen: Option<u64>) -> Result<Forgotten, PlanError> {
        forget::forget(&self.inner, plan, by, seen).await
    }

    /// Forgets what is older, or takes more room, than the settings allow. *Cancel safety*: dropped half-way, the rest
    /// is forgotten the next time.
    ///
    /// # Errors
    /// The log failed, or a sandbox cannot be taken away.
    pub async fn forget_old(&self) -> Result<Forgotten, PlanError> {
        forget::forget_old(&self.inner).await
    }

    /// How sandboxes can be made here, the best first: what is to be said of each, or why it does not work.
    #[must_use]
    pub fn strategies(&self) -> Vec<(SandboxStrategy, Result<String, String>)> {
        self.inner.strategies.list()
    }

    /// What happened to a plan, oldest first.
    ///
    /// # Errors
    /// There is no such plan.
    pub async fn timeline(
        &self,
        plan: PlanId,
        after: Sequence,
        limit: u32,
    ) -> Result<Vec<Moment>, PlanError> {
        self.get(plan).await?;
        let page = self
            .inner
            .log
            .read(&streams::plan_stream(plan)?, after, limit)
            .await?;
        Ok(page.events.iter().map(Moment::of).collect())
    }

    /// Follows what happens to a plan. Its items become moments by [`Moment::of`].
    ///
    /// # Errors
    /// Never in practice: every id names a stream.
    pub fn follow(&self, plan: PlanId, after: Sequence, scope: &Scope) -> Result<Tail, PlanError> {
        Ok(self.inner.log.tail(&streams::plan_stream(plan)?, after, scope))
    }

    #[must_use]
    pub fn moves(&self) -> StreamChanges {
        self.inner.log.changes(PLAN_KIND)
    }

    /// Keeps what is in the sandbox of a plan from being recorded, as long as the answer is held. For whoever is about to give
    /// the plan up and must not wait for that.
    pub fn hold_captures(&self, plan: PlanId) -> CaptureHold {
        CaptureTokens::hold(&self.inner.captures, plan)
    }

    /// Calls off what looks at sandboxes to record what changed there; the next daemon does that. For a daemon that has no
    /// time left to wait for it.
    pub fn stop_captures(&self) {
        let cause = kernel::Cause::new("the daemon", "it is stopping");
        self.inner.captures.cancel_all(cause);
    }

    /// Takes nothing more on. What was begun is finished by the tasks of the service, which end by themselves.
    pub fn close(&self) {
        let cause = kernel::Cause::new("the daemon", "it is stopping");
        self.reading.cancel(cause);
        self.inner.landing_queues.close();
        self.inner.plan_workers.close();
        self.inner.registry.close();
        self.inner.overlaps.close();
    }
}

/// A changeset that its plan no longer has open is closed: sealing and applying close all of them in one step.
fn settle(plan: &Plan, changeset: &mut Changeset) {
    let mut open = plan.record.open_changesets.iter();
    if !open.any(|open| open.id == changeset.id) {
        changeset.record.state = ChangesetState::Closed;
    }
}
