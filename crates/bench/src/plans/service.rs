//! The plan service as the daemon runs it, with the log and everything else in one directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use plans::{
    ApplyRequest, Attribution, Entrance, GcPolicy, LandingOutcome, LandingSteps, NewPlan, PlanOrigin, Plans,
    PlansOptions, PlansSettings, Run, Unapplied, UndoRequest,
};
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks,
};
use protocol::{BootId, HomeId, IfChildFails, OutcomeKind, PlanId};
use tokio::io::AsyncReadExt as _;

const ACTOR: &str = "bench";

#[derive(Debug)]
pub(super) struct Starter {
    pub(super) processes: Processes,
    log: Log,
    home_id: HomeId,
    tasks: Tasks,
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) plans: Plans,
    starter: Starter,
}

pub(super) fn environment() -> BTreeMap<OsString, OsString> {
    let wanted = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    wanted
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

impl Starter {
    /// Opens a log in a directory. A log that already exists there is reopened, with the same home.
    pub(super) async fn open(tidelock: &Path, directory: &Path) -> Result<Self> {
        let name = directory.join("home-id");
        let home_id = match std::fs::read_to_string(&name) {
            Ok(text) => text.parse()?,
            Err(_) => HomeId::generate(),
        };
        std::fs::write(&name, home_id.to_string())?;
        let options = SqliteOptions {
            path: directory.join("log.sqlite3"),
        };
        let log = Log::open_sqlite(&options, SystemClock::shared())?;
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(tidelock.canonicalize().context("`tidelock` is not built")?),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        });
        Ok(Self {
            processes: processes.await?,
            log,
            home_id,
            tasks,
        })
    }

    /// Runs a program that must succeed, and returns its standard output.
    pub(super) async fn run(&self, entrance: &Entrance, program: &[&str]) -> Result<Vec<u8>> {
        let (first, rest) = program.split_first().context("no program is named")?;
        let mut environment = environment();
        environment.extend(entrance.environment.clone());
        let spec = Spec {
            program: PathBuf::from(first),
            arguments: rest.iter().map(OsString::from).collect(),
            directory: entrance.root.clone(),
            environment,
            owner: ACTOR.to_owned(),
            reason: (*first).to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::WriteBelow(entrance.write_below.clone()),
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: entrance.view.clone(),
        };
        let child = self.processes.spawn(spec).await?;
        drop(child.stdin());
        let mut said = Vec::new();
        let mut stdout = child.stdout().context("a command without a standard output")?;
        stdout.read_to_end(&mut said).await?;
        let exit = child.ended().await.exit;
        let stderr = child.stderr_tail();
        ensure!(
            exit == Exit::Code(0),
            "`{first}` ended with {exit}: {}",
            stderr.trim()
        );
        Ok(said)
    }

    /// Waits until all work is done, so that none of it falls into another contender's turn.
    pub(super) async fn close(self) {
        let Self {
            processes,
            log,
            tasks,
            ..
        } = self;
        drop(processes);
        drop(log);
        tasks.finished().await;
    }
}

impl Service {
    /// Opens the service in a directory; recovers first what an earlier instance left there.
    pub(super) async fn open(tidelock: &Path, directory: &Path) -> Result<Self> {
        let starter = Starter::open(tidelock, directory).await?;
        let (plans, mut recovered) = Plans::open(PlansOptions {
            log: starter.log.clone(),
            directory: directory.join("plans"),
            guarded: Vec::new(),
            home_id: starter.home_id,
            processes: starter.processes.clone(),
            environment: environment(),
            settings: PlansSettings::default(),
            tasks: starter.tasks.clone(),
            clock: SystemClock::shared(),
            steps: LandingSteps::default(),
        })
        .await?;
        recovered.notes().await;
        Ok(Self { plans, starter })
    }

    pub(super) async fn plan(&self, workspace: &Path) -> Result<PlanId> {
        let new = NewPlan {
            on: PlanOrigin::Directory(workspace.to_owned()),
            title: "a plan".to_owned(),
            checks: Vec::new(),
            strategy: None,
            max_parallel: None,
            if_child_fails: IfChildFails::CarryOn,
            idempotency_key: None,
            by: Arc::from(ACTOR),
        };
        Ok(self.plans.open_plan(new).await?.plan.id)
    }

    /// Runs a program in the sandbox of a plan, and records what it changed.
    pub(super) async fn run(&self, plan: PlanId, program: &[&str]) -> Result<Vec<u8>> {
        let new = Attribution {
            actor: Arc::from(ACTOR),
            tool: "shell".to_owned(),
            reason: program.first().copied().unwrap_or_default().to_owned(),
            job: None,
        };
        let stay = self.plans.begin_command(plan, new).await?;
        let said = self.starter.run(&stay.entrance, program).await;
        self.plans.end_command(&stay).await?;
        said
    }

    pub(super) async fn shell(&self, plan: PlanId, line: &str) -> Result<()> {
        self.run(plan, &["sh", "-c", line]).await.map(drop)
    }

    pub(super) async fn apply(&self, plan: PlanId) -> Result<LandingOutcome> {
        let order = ApplyRequest {
            plans: vec![plan],
            seen: Vec::new(),
            by: Arc::from(ACTOR),
            run: Run::Real,
            commit: None,
        };
        Ok(self.plans.apply(order).await?)
    }

    pub(super) async fn undo(&self, plan: PlanId) -> Result<LandingOutcome> {
        let order = UndoRequest {
            plan,
            changeset: None,
            seen: None,
            by: Arc::from(ACTOR),
            run: Run::Real,
        };
        Ok(self.plans.undo(order).await?)
    }

    pub(super) async fn discard(&self, plan: PlanId) -> Result<()> {
        let by = Arc::from(ACTOR);
        self.plans.discard(plan, by, None, Unapplied::GiveUp).await?;
        Ok(())
    }

    pub(super) async fn collect(&self) -> Result<()> {
        let policy = GcPolicy {
            older_than: std::time::Duration::ZERO,
            run: Run::Real,
        };
        self.plans.collect(policy).await?;
        Ok(())
    }

    pub(super) async fn close(self) {
        let Self { plans, starter } = self;
        plans.close();
        drop(plans);
        starter.close().await;
    }
}

pub(super) fn must_be_done(outcome: &LandingOutcome, paths: usize) -> Result<()> {
    ensure!(
        outcome.kind == OutcomeKind::Done && outcome.paths.len() == paths,
        "{:?} with {} paths and {} conflicts, instead of {paths} paths",
        outcome.kind,
        outcome.paths.len(),
        outcome.conflicts.len()
    );
    Ok(())
}
