//! The public interface of the service.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{EntityRecord, HeadsOrder, HeadsQuery, Sequence, StreamChanges, Tail};
use kernel::{CancellationToken, Scope};
use protocol::{
    ChangesetId, ChangesetState, PlanCounts, PlanId, PlanOverlap, PlanState, RescuedId, SandboxStrategy,
    WorkspaceId, WorkspaceState,
};

use crate::base_request::Waiting;
use crate::inner::{PlansInner, base_error, blocking};
use crate::landing_queue::SCAN_KEPT_FOR;
use crate::log_contents::LogContents;
use crate::overlaps::OverlapIndex;
use crate::plan_worker::{CaptureTokens, CommandRuns, sandbox_directory};
use crate::recovery_list::Recovering;
use crate::root_check::RootChecks;
use crate::workers::{IDLE, Workers};
use crate::{
    Actor, ApplyRequest, Attribution, Bases, CaptureHold, Change, ChangeFiles, Changeset, CheckEnd,
    CommandRun, Contents, Explorer, FileFound, FilesChanged, LandingOutcome, Moment, Plan, PlanError,
    PlanExecutionContext, PlanQuery, PlanRecord, PlansOptions, Recovered, Recovery, RelPath, Repair,
    Repaired, Rescued, RescuedList, RestoreRequest, Restored, Strategies, StuckLanding, UndoRequest,
    Workspace, explore, fold, recover, state, store, workspaces,
};

/// How many plans are read at a time for a list.
const PAGE: u32 = 256;

/// The plans of a log. Clones refer to the same service.
///
/// *Cancel safety*: methods that only read may be dropped at any time. Everything else continues when it is dropped, or
/// was never begun, unless its method says otherwise.
#[derive(Clone, Debug)]
pub struct Plans {
    pub(crate) inner: Arc<PlansInner>,
    /// Cancels reads of trees when the last handle is dropped or the service is closed.
    reading: CancellationToken,
}

impl Plans {
    /// Opens the plans of a log, and begins to recover what an earlier daemon left unfinished. Requests for such a plan
    /// or workspace wait for that; others don't. If the future is dropped, the rest is recovered the next time.
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
            root_checks: RootChecks::new(Arc::clone(&clock)),
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
            stuck: Default::default(),
            notices: Default::default(),
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

    pub async fn get(&self, id: PlanId) -> Result<Plan, PlanError> {
        let plan = store::plan(&self.inner.log, id).await?;
        Ok(self.without_ended_commands(plan))
    }

    /// For our own home, we know which commands have ended, whatever the log says.
    fn without_ended_commands(&self, plan: Plan) -> Plan {
        if plan.record.facts.home == self.inner.home_id {
            self.inner.command_runs.seen(plan)
        } else {
            plan
        }
    }

    /// Plans, newest first.
    pub async fn list(&self, query: PlanQuery) -> Result<Vec<Plan>, PlanError> {
        let [_, _, ..] = query.states.as_slice() else {
            return self.list_in(query.states.first().copied(), &query).await;
        };
        // Listing one state costs as much as its result. Listing all of them would read everything to find a
        // few.
        let mut found = Vec::new();
        for state in &query.states {
            found.append(&mut self.list_in(Some(*state), &query).await?);
        }
        found.sort_by_key(|plan| std::cmp::Reverse(plan.id));
        // A plan that changed its state in the meantime is listed twice.
        found.dedup_by_key(|plan| plan.id);
        found.truncate(query.limit as usize);
        Ok(found)
    }

    async fn list_in(&self, state: Option<PlanState>, query: &PlanQuery) -> Result<Vec<Plan>, PlanError> {
        let log = &self.inner.log;
        let mut pages = log.pages(HeadsQuery {
            kind: PlanRecord::KIND.into(),
            status: state.map(|state| state.as_str().into()),
            order: HeadsOrder::NewestFirst,
            after: query.before.map(|before| Plan::stream_of(&before)).transpose()?,
            limit: PAGE,
        });
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            for plan in page.iter().filter_map(|stored| Plan::of_head(log, stored).ok()) {
                // A child is newer than its parent, so there are no more from here on.
                if query.parent.is_some_and(|parent| plan.id < parent) {
                    return Ok(found);
                }
                let facts = &plan.record.facts;
                let is_wanted = query
                    .workspace
                    .is_none_or(|workspace| facts.workspace == workspace)
                    && query.parent.is_none_or(|parent| facts.parent == Some(parent));
                if is_wanted {
                    found.push(self.without_ended_commands(plan));
                }
                if found.len() >= query.limit as usize {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// What an earlier daemon left unfinished and is being recovered.
    #[must_use]
    pub fn recovering(&self) -> Vec<Recovery> {
        self.inner.recovering.list()
    }

    /// How many plans are open or sealed, as far as this daemon knows.
    #[must_use]
    pub fn counts(&self) -> PlanCounts {
        self.inner.overlaps.counts()
    }

    /// The other open plans of the workspace that touch the same files, as far as they are known by now.
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
                sandbox_directory(&self.inner, plan).join("tree")
            }
        }
    }

    /// The changesets of a plan, oldest first, without their changes.
    pub async fn changesets(&self, id: PlanId) -> Result<Vec<Changeset>, PlanError> {
        let plan = self.get(id).await?;
        let mut changesets = store::changesets(&self.inner.log, id).await?;
        for changeset in &mut changesets {
            settle(&plan, changeset);
        }
        Ok(changesets)
    }

    /// One changeset with its changes.
    pub async fn changeset(&self, id: PlanId, changeset: ChangesetId) -> Result<Changeset, PlanError> {
        let plan = self.get(id).await?;
        let mut changeset = store::changeset(&self.inner.log, id, changeset).await?;
        settle(&plan, &mut changeset);
        Ok(changeset)
    }

    /// The plan from the view of one actor.
    pub async fn context(&self, plan: PlanId, actor: Actor) -> Result<PlanExecutionContext, PlanError> {
        self.get(plan).await?;
        Ok(PlanExecutionContext {
            inner: Arc::clone(&self.inner),
            plan,
            actor,
        })
    }

    /// Starts a changeset and makes it its actor's current one.
    pub async fn start_changeset(&self, plan: PlanId, by: Attribution) -> Result<Changeset, PlanError> {
        let start = self
            .inner
            .at_plan(plan, move |worker| Box::pin(worker.start_changeset(by)));
        self.changeset(plan, start.await?).await
    }

    /// Closes a changeset; does nothing if it is already closed.
    pub async fn close_changeset(&self, plan: PlanId, id: ChangesetId) -> Result<Changeset, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.close_changeset(id)))
            .await?;
        self.changeset(plan, id).await
    }

    /// Writes to the sandbox and records it.
    pub async fn change_files(&self, plan: PlanId, order: ChangeFiles) -> Result<FilesChanged, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.change_files(order)))
            .await
    }

    /// Reads what is at a path of the sandbox, or at its root.
    pub async fn read_file(&self, plan: PlanId, path: Option<RelPath>) -> Result<FileFound, PlanError> {
        let sandbox = match self.inner.open_sandboxes.get(plan) {
            Some(sandbox) => sandbox,
            None => {
                let open = self.inner.at_plan(plan, |worker| Box::pin(worker.sandbox()));
                open.await?
            }
        };
        // Agents read all day, and waking a thread takes longer than reading a small file.
        if let Some((entry, content)) = path.as_ref().and_then(|path| sandbox.tree().file_at_hand(path)) {
            return Ok(FileFound::File { entry, content });
        }
        blocking(move || explore::read(sandbox.tree(), path.as_ref())).await?
    }

    /// Browses the files of the sandbox, on a thread that may block.
    pub async fn explore<R: Send + 'static>(
        &self,
        plan: PlanId,
        look: impl FnOnce(&mut Explorer<'_, '_>) -> R + Send + 'static,
    ) -> Result<R, PlanError> {
        let open = self.inner.at_plan(plan, |worker| Box::pin(worker.sandbox()));
        let sandbox = open.await?;
        blocking(move || explore::explore(sandbox.as_ref(), look)).await?
    }

    /// The net changes of the plan in path order, or the changes of one changeset.
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

    /// The contents of changes. Reading them blocks, so use it from blocking tasks only.
    #[must_use]
    pub fn contents(&self) -> Arc<dyn Contents> {
        Arc::new(self.inner.contents.clone())
    }

    /// Marks the work as done. Refused while a command runs in the plan.
    pub async fn seal(&self, plan: PlanId, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.seal(by, seen)))
            .await
    }

    /// Moves an open plan's sandbox to the workspace's current state. A conflict is an outcome, not an error.
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

    /// Applies plans: all of them or none. A conflict is an outcome, not an error.
    pub async fn apply(&self, mut order: ApplyRequest) -> Result<LandingOutcome, PlanError> {
        let mut seen = HashSet::new();
        order.plans.retain(|plan| seen.insert(*plan));
        let first = *order.plans.first().ok_or(PlanError::NotTogether)?;
        let workspace = self.get(first).await?.record.facts.workspace;
        self.inner
            .at_workspace(workspace, move |queue| Box::pin(queue.apply(order)))
            .await
    }

    /// Undoes an applied plan, or one changeset of it. A conflict is an outcome, not an error.
    pub async fn undo(&self, order: UndoRequest) -> Result<LandingOutcome, PlanError> {
        let workspace = self.get(order.plan).await?.record.facts.workspace;
        self.inner
            .at_workspace(workspace, move |queue| Box::pin(queue.undo(order)))
            .await
    }

    pub async fn add_checks(&self, plan: PlanId, commands: Vec<String>) -> Result<Plan, PlanError> {
        let add = move |plan, record: &_, now| state::add_checks(plan, record, commands.clone(), now);
        self.inner.change_plan(plan, add).await
    }

    /// Records that a check is about to run as a job. If that job is already its last run, nothing happens.
    pub async fn check_started(
        &self,
        plan: PlanId,
        by: Actor,
        command: String,
        job: String,
    ) -> Result<Plan, PlanError> {
        let start = move |plan, record: &_, now| state::check_started(plan, record, &command, &job, &by, now);
        self.inner.change_plan(plan, start).await
    }

    /// Records that a check has ended. If it isn't the last run of its command, or has ended before, nothing changes.
    pub async fn check_ended(
        &self,
        plan: PlanId,
        by: Actor,
        command: String,
        job: String,
        end: CheckEnd,
    ) -> Result<Plan, PlanError> {
        let end =
            move |_, record: &_, now| Ok(state::check_ended(record, &command, &job, end.clone(), &by, now));
        self.inner.change_plan(plan, end).await
    }

    /// Records that a command is about to run in the sandbox.
    pub async fn begin_command(&self, plan: PlanId, by: Attribution) -> Result<CommandRun, PlanError> {
        self.inner
            .at_plan(plan, move |worker| Box::pin(worker.begin_command(by)))
            .await
    }

    /// Records that a command has ended, with all of its processes: captures its changes and attributes them to
    /// its actor. Returns the changeset, if anything changed.
    pub async fn end_command(&self, run: &CommandRun) -> Result<Option<Changeset>, PlanError> {
        let id = run.id.clone();
        let end = self.inner.at_plan(run.plan, move |worker| {
            Box::pin(async move { worker.end_command(&id).await })
        });
        end.await
    }

    /// The workspaces, by path.
    pub async fn workspaces(&self) -> Result<Vec<Workspace>, PlanError> {
        workspaces::list(&self.inner).await
    }

    /// Whether a workspace is present; `None` if the id is unknown. Checks no other workspace.
    pub async fn presence(&self, id: WorkspaceId) -> Result<Option<WorkspaceState>, PlanError> {
        workspaces::presence(&self.inner, id).await
    }

    /// An apply or undo of a workspace that couldn't be finished at the last attempt.
    #[must_use]
    pub fn stuck_landing(&self, id: WorkspaceId) -> Option<StuckLanding> {
        self.inner.stuck.of(id)
    }

    /// Which guarantees are weaker in a workspace than elsewhere, as far as this daemon has found out.
    #[must_use]
    pub fn workspace_notice(&self, id: WorkspaceId) -> Option<String> {
        self.inner.notices.of(id).flatten()
    }

    /// Finishes or rolls back an interrupted apply or undo, or sets it aside. If neither is possible, that is an
    /// answer, not an error.
    pub async fn repair_workspace(&self, id: WorkspaceId, how: Repair) -> Result<Repaired, PlanError> {
        self.inner
            .at_workspace(id, move |queue| Box::pin(queue.repair(how)))
            .await
    }

    /// Users' content that applies and undos had to keep, newest first.
    pub async fn rescued(&self) -> Result<RescuedList, PlanError> {
        let shelf = self.inner.shelf();
        let list = blocking(move || shelf.list()).await?;
        list.map_err(PlanError::io("listing rescued content"))
    }

    /// Puts rescued content back into its workspace.
    pub async fn restore_rescued(&self, order: RestoreRequest) -> Result<Restored, PlanError> {
        let rescued = self.rescued_of(order.id).await?;
        self.inner
            .at_workspace(rescued.record.workspace, move |queue| {
                Box::pin(queue.restore(rescued, order))
            })
            .await
    }

    /// Removes rescued content for good.
    pub async fn drop_rescued(&self, id: RescuedId) -> Result<Rescued, PlanError> {
        let rescued = self.rescued_of(id).await?;
        let shelf = self.inner.shelf();
        let removed = blocking(move || shelf.remove(id)).await?;
        removed.map_err(PlanError::io(format!("removing {}", rescued.at.display())))?;
        Ok(rescued)
    }

    async fn rescued_of(&self, id: RescuedId) -> Result<Rescued, PlanError> {
        let shelf = self.inner.shelf();
        let found = blocking(move || shelf.read(id)).await?;
        let found = found.map_err(PlanError::io(format!("reading the record of {id}")))?;
        found.ok_or(PlanError::RescuedNotFound(id))
    }

    /// Forgets a workspace that has no open or sealed plans. An undo that is stuck there is set aside first.
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
    pub async fn set_workspace_checks(
        &self,
        id: WorkspaceId,
        checks: Vec<String>,
    ) -> Result<Workspace, PlanError> {
        self.inner
            .at_registry(move |registry| Box::pin(registry.set_checks(id, checks)))
            .await
    }

    /// The strategies for sandboxes here, best first: a description of each, or why it doesn't work.
    #[must_use]
    pub fn strategies(&self) -> Vec<(SandboxStrategy, Result<String, String>)> {
        self.inner.strategies.list()
    }

    /// What happened to a plan, oldest first.
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
            .read(&Plan::stream_of(&plan)?, after, limit)
            .await?;
        Ok(page.events.iter().map(Moment::of).collect())
    }

    /// Follows what happens to a plan. Convert its items with [`Moment::of`].
    pub fn follow(&self, plan: PlanId, after: Sequence, scope: &Scope) -> Result<Tail, PlanError> {
        Ok(self.inner.log.tail(&Plan::stream_of(&plan)?, after, scope))
    }

    /// Notifies when any plan has changed.
    #[must_use]
    pub fn moves(&self) -> StreamChanges {
        self.inner.log.changes(PlanRecord::KIND)
    }

    /// Prevents a plan's sandbox from being recorded while the returned value is held. For a caller that is about to
    /// discard the plan and must not wait for that.
    pub fn hold_captures(&self, plan: PlanId) -> CaptureHold {
        CaptureTokens::hold(&self.inner.captures, plan)
    }

    /// Cancels all captures; the next daemon records what changed. For a daemon that has no time left to wait for them.
    pub fn stop_captures(&self) {
        let cause = kernel::Cause::new("the daemon", "it is stopping");
        self.inner.captures.cancel_all(cause);
    }

    /// Stops accepting requests. The service's tasks finish what was begun, and end by themselves.
    pub fn close(&self) {
        let cause = kernel::Cause::new("the daemon", "it is stopping");
        self.reading.cancel(cause);
        self.inner.landing_queues.close();
        self.inner.plan_workers.close();
        self.inner.registry.close();
        self.inner.overlaps.close();
    }
}

/// A changeset that its plan no longer lists as open is closed: sealing and applying close all of them in one step.
fn settle(plan: &Plan, changeset: &mut Changeset) {
    let mut open = plan.record.open_changesets.iter();
    if !open.any(|open| open.id == changeset.id) {
        changeset.record.state = ChangesetState::Closed;
    }
}
