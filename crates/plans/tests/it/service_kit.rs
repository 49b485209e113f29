//! A service on a log of its own, with a workspace, which can be closed and opened again as after a restart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use eventlog::{Log, SqliteOptions};
use kernel::{Clock, SystemClock};
use plans::{
    Actor, ApplyRequest, Attribution, ChangeFiles, CommandRun, FileOperation, LandingOutcome, LandingSteps,
    NewPlan, Plan, PlanOrigin, Plans, PlansOptions, PlansSettings, Run, UndoRequest,
};
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks,
};
use protocol::{BootId, HomeId, IfChildFails, PlanId};

/// A service and a workspace.
pub(crate) struct Kit {
    pub(crate) plans: Plans,
    pub(crate) log: Log,
    pub(crate) processes: Processes,
    pub(crate) workspace: PathBuf,
    pub(crate) root: PathBuf,
    /// In force from the next opening on.
    pub(crate) settings: PlansSettings,
    pub(crate) clock: Arc<dyn Clock>,
    home_id: HomeId,
    tasks: Tasks,
    _directory: tempfile::TempDir,
}

pub(crate) fn actor(name: &str) -> Actor {
    Arc::from(name)
}

impl Kit {
    /// A service with a workspace that a script makes.
    pub(crate) async fn of(script: &str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("service")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        fs::create_dir(&workspace).unwrap();
        shell(&workspace, script);
        let options = SqliteOptions {
            path: root.join("log.sqlite"),
        };
        let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
        let home_id = HomeId::generate();
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_sandbox-keeper").into()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let settings = PlansSettings::default();
        let clock: Arc<dyn Clock> = SystemClock::shared();
        let steps = LandingSteps::default();
        let opened = open(
            (&log, &root, home_id),
            (&settings, &clock),
            (&processes, &tasks),
            steps,
        );
        let plans = opened.await.0;
        Self {
            plans,
            log,
            processes,
            workspace,
            root,
            settings,
            clock,
            home_id,
            tasks,
            _directory: directory,
        }
    }

    /// The same workspace as a repository with everything committed.
    pub(crate) async fn repository(script: &str) -> Self {
        Self::of(&format!("{script}\n{COMMIT}")).await
    }

    /// Opens the service again, as another life of the daemon would. What it set right is said.
    pub(crate) async fn again(&mut self) -> Vec<String> {
        self.again_with(LandingSteps::default()).await
    }

    pub(crate) async fn again_with(&mut self, steps: LandingSteps) -> Vec<String> {
        self.plans.close();
        let (plans, notes) = open(
            (&self.log, &self.root, self.home_id),
            (&self.settings, &self.clock),
            (&self.processes, &self.tasks),
            steps,
        )
        .await;
        self.plans = plans;
        notes
    }

    pub(crate) async fn plan(&self, title: &str) -> PlanId {
        self.open_plan(NewPlan {
            title: title.to_owned(),
            ..self.new_plan()
        })
        .await
        .id
    }

    pub(crate) fn new_plan(&self) -> NewPlan {
        NewPlan {
            on: PlanOrigin::Directory(self.workspace.clone()),
            title: "a plan".to_owned(),
            checks: Vec::new(),
            strategy: None,
            max_parallel: None,
            if_child_fails: IfChildFails::CarryOn,
            idempotency_key: None,
            by: actor("ann"),
        }
    }

    pub(crate) async fn open_plan(&self, new: NewPlan) -> Plan {
        self.plans.open_plan(new).await.unwrap().plan
    }

    /// Writes a file in a plan.
    pub(crate) async fn write(&self, plan: PlanId, by: &str, path: &str, content: &str) {
        self.operate(
            plan,
            by,
            FileOperation::Write {
                path: path.parse().unwrap(),
                content: content.into(),
                executable: None,
                seen: None,
            },
        )
        .await;
    }

    pub(crate) async fn operate(&self, plan: PlanId, by: &str, operation: FileOperation) {
        let order = ChangeFiles {
            by: actor(by),
            changeset: None,
            tool: "api".to_owned(),
            reason: String::new(),
            operations: vec![operation],
        };
        let changed = self.plans.change_files(plan, order).await.unwrap();
        assert!(changed.stopped_by.is_none(), "{:?}", changed.stopped_by);
    }

    /// Runs a shell line in a plan's sandbox, as a job would.
    pub(crate) async fn run(&self, plan: PlanId, by: &str, line: &str) -> Exit {
        let run = self.begin_command(plan, by, line).await;
        let exit = self.command(&run, line).await;
        self.plans.end_command(&run).await.unwrap();
        exit
    }

    pub(crate) async fn begin_command(&self, plan: PlanId, by: &str, line: &str) -> CommandRun {
        let new = Attribution {
            actor: actor(by),
            tool: "shell".to_owned(),
            reason: line.to_owned(),
            job: None,
        };
        self.plans.begin_command(plan, new).await.unwrap()
    }

    pub(crate) async fn command(&self, run: &CommandRun, line: &str) -> Exit {
        let mut environment = BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
        environment.extend(run.entrance.environment.clone());
        let writable = run.entrance.writable(&environment).await.unwrap();
        let spec = Spec {
            program: "sh".into(),
            arguments: vec!["-c".into(), line.into()],
            directory: run.entrance.root.clone(),
            environment,
            owner: "test".to_owned(),
            reason: line.to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::WriteBelow(writable),
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: run.entrance.view.clone(),
        };
        let child = self.processes.spawn(spec).await.unwrap();
        child.ended().await.exit
    }

    pub(crate) async fn apply(&self, plans: &[PlanId]) -> LandingOutcome {
        self.plans.apply(self.apply_order(plans)).await.unwrap()
    }

    pub(crate) fn apply_order(&self, plans: &[PlanId]) -> ApplyRequest {
        ApplyRequest {
            plans: plans.to_vec(),
            seen: Vec::new(),
            by: actor("ann"),
            run: Run::Real,
            commit: None,
        }
    }

    pub(crate) async fn undo(&self, plan: PlanId) -> LandingOutcome {
        self.plans.undo(self.undo_order(plan)).await.unwrap()
    }

    pub(crate) fn undo_order(&self, plan: PlanId) -> UndoRequest {
        UndoRequest {
            plan,
            changeset: None,
            seen: None,
            by: actor("ann"),
            run: Run::Real,
        }
    }

    /// Everything in the workspace but `.git`: path, kind, permissions, content.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        tree(&self.workspace)
    }
}

/// Commits everything.
pub(crate) const COMMIT: &str =
    "git init -q -b main && git add -A && git -c user.name=a -c user.email=a@b commit -q -m first";

async fn open(
    (log, root, home_id): (&Log, &Path, HomeId),
    (settings, clock): (&PlansSettings, &Arc<dyn Clock>),
    (processes, tasks): (&Processes, &Tasks),
    steps: LandingSteps,
) -> (Plans, Vec<String>) {
    let options = PlansOptions {
        log: log.clone(),
        directory: root.join("data"),
        guarded: Vec::new(),
        home_id,
        processes: processes.clone(),
        environment: BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), root.join("home").into_os_string()),
        ]),
        settings: settings.clone(),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
        steps,
    };
    let (plans, mut recovered) = Plans::open(options).await.unwrap();
    (plans, recovered.notes().await)
}

pub(crate) fn shell(directory: &Path, script: &str) {
    let done = Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", directory)
        .status()
        .unwrap();
    assert!(done.success(), "{script}");
}

pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if name == ".git" {
                continue;
            }
            let about = fs::symlink_metadata(&path).unwrap();
            let shown = if about.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if about.is_dir() {
                waiting.push(path);
                "directory".to_owned()
            } else {
                let content = fs::read(&path).unwrap();
                format!(
                    "{:o} {}",
                    about.permissions().mode() & 0o777,
                    String::from_utf8_lossy(&content)
                )
            };
            found.insert(name, shown);
        }
    }
    found
}
