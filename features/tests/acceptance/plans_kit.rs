//! A workspace and a service of plans on a log of its own, which can be closed and opened again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::{Log, SqliteOptions};
use kernel::SystemClock;
use plans::{
    Actor, ApplyRequest, Attribution, FileFound, LandingSteps, NewPlan, PlanOrigin, Plans, PlansOptions,
    PlansSettings, Run, UndoRequest,
};
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks,
};
use protocol::IfChildFails;
use protocol::{BootId, HomeId, PlanId};
use tempfile::TempDir;

/// How long anything may take that takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where a workspace and the files of a daemon are.
pub(crate) struct Site {
    pub(crate) root: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) home_id: HomeId,
    _directory: TempDir,
}

/// A running service on a site.
pub(crate) struct Running {
    pub(crate) plans: Plans,
    pub(crate) log: Log,
    processes: Processes,
    tasks: Tasks,
}

/// Everything in a tree but `.git`: what is at each path.
pub(crate) type Files = BTreeMap<String, String>;

pub(crate) fn actor(name: &str) -> Actor {
    Arc::from(name)
}

impl Site {
    /// A workspace that a script makes, as a repository with everything committed.
    pub(crate) fn of(script: &str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("plans")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        fs::create_dir(&workspace).unwrap();
        let site = Self {
            root,
            workspace,
            home_id: HomeId::generate(),
            _directory: directory,
        };
        site.shell(&format!("{script}\ngit init -q -b main"));
        site.commit_all();
        site
    }

    /// Runs a script in the workspace, as its user does.
    pub(crate) fn shell(&self, script: &str) {
        assert!(self.git_shell(script).status().unwrap().success(), "{script}");
    }

    /// A script in the workspace, with nothing of the user's settings.
    pub(crate) fn git_shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-ec", script])
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.root)
            .envs([
                ("GIT_AUTHOR_NAME", "a"),
                ("GIT_AUTHOR_EMAIL", "a@b"),
                ("GIT_COMMITTER_NAME", "a"),
                ("GIT_COMMITTER_EMAIL", "a@b"),
            ]);
        command
    }

    pub(crate) fn commit_all(&self) {
        self.shell("git add -A && git commit -q --allow-empty -m all");
    }

    /// Opens the service.
    pub(crate) async fn open(&self) -> Running {
        let options = SqliteOptions {
            path: self.root.join("log.sqlite"),
        };
        let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
        self.open_on(log).await
    }

    /// Opens the service on a log that is open already: another process that shares it.
    pub(crate) async fn open_on(&self, log: Log) -> Running {
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id: self.home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_test-applier").into()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let options = PlansOptions {
            log: log.clone(),
            directory: self.root.join("data"),
            guarded: Vec::new(),
            home_id: self.home_id,
            processes: processes.clone(),
            environment: BTreeMap::from([
                ("PATH".into(), PATH.into()),
                ("HOME".into(), self.root.join("home").into_os_string()),
            ]),
            settings: PlansSettings::default(),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
            steps: LandingSteps::default(),
        };
        let (plans, mut recovered) = Plans::open(options).await.unwrap();
        // It goes on while others are served; what is asked here is what it comes to.
        recovered.notes().await;
        Running {
            plans,
            log,
            processes,
            tasks,
        }
    }

    /// Waits until the log can be opened: the last thread that has it gives it back when it ends.
    pub(crate) async fn wait_for_log(&self) {
        let options = SqliteOptions {
            path: self.root.join("log.sqlite"),
        };
        let began = Instant::now();
        while let Err(error) = Log::open_sqlite(&options, SystemClock::shared()) {
            assert!(began.elapsed() < PATIENCE, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Everything in the workspace but `.git`.
    pub(crate) fn files(&self) -> Files {
        let mut found = Files::new();
        let mut waiting = vec![self.workspace.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&self.workspace).unwrap();
                let name = name.to_string_lossy().into_owned();
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
                    shown(about.permissions().mode() & 0o777, &fs::read(&path).unwrap())
                };
                found.insert(name, shown);
            }
        }
        found
    }
}

fn shown(mode: u32, content: &[u8]) -> String {
    format!("{mode:o} {}", String::from_utf8_lossy(content))
}

impl Running {
    pub(crate) async fn plan(&self, workspace: &Path, title: &str) -> PlanId {
        let new = NewPlan {
            on: PlanOrigin::Directory(workspace.to_owned()),
            title: title.to_owned(),
            checks: Vec::new(),
            strategy: None,
            max_parallel: None,
            if_child_fails: IfChildFails::CarryOn,
            idempotency_key: None,
            by: actor("ann"),
        };
        self.plans.open_plan(new).await.unwrap().plan.id
    }

    /// Runs a shell line in a plan's sandbox, as a job would.
    pub(crate) async fn run(&self, plan: PlanId, by: &str, line: &str) -> Exit {
        let new = Attribution {
            actor: actor(by),
            tool: "shell".to_owned(),
            reason: line.to_owned(),
            job: None,
        };
        let stay = self.plans.begin_command(plan, new).await.unwrap();
        let mut environment = BTreeMap::from([("PATH".into(), PATH.into())]);
        environment.extend(stay.entrance.environment.clone());
        let spec = Spec {
            program: "sh".into(),
            arguments: vec!["-ec".into(), line.into()],
            directory: stay.entrance.root.clone(),
            environment,
            owner: "scenario".to_owned(),
            reason: line.to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::WriteBelow(stay.entrance.write_below.clone()),
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: stay.entrance.view.clone(),
        };
        let child = self.processes.spawn(spec).await.unwrap();
        let exit = child.ended().await.exit;
        self.plans.end_command(&stay).await.unwrap();
        exit
    }

    /// Everything in the sandbox of a plan but `.git`, as the service shows it.
    pub(crate) async fn sandbox(&self, plan: PlanId) -> Files {
        let mut found = Files::new();
        let mut waiting = vec![String::new()];
        while let Some(name) = waiting.pop() {
            let path = (!name.is_empty()).then(|| name.trim_end_matches('/').parse().unwrap());
            let shown = match self.plans.read_file(plan, path).await.unwrap() {
                FileFound::Directory { names } => {
                    let inside = names
                        .iter()
                        .filter(|inside| *inside != ".git/" && *inside != ".git");
                    waiting.extend(inside.map(|inside| format!("{name}{inside}")));
                    "directory".to_owned()
                }
                FileFound::Symlink { target } => format!("-> {}", String::from_utf8_lossy(&target)),
                FileFound::File {
                    entry: plans::Entry::File { mode, .. },
                    content,
                } => shown(mode, &content),
                other => panic!("{name} is {other:?}"),
            };
            if !name.is_empty() {
                found.insert(name.trim_end_matches('/').to_owned(), shown);
            }
        }
        found
    }

    pub(crate) fn apply_order(plans: &[PlanId]) -> ApplyRequest {
        ApplyRequest {
            plans: plans.to_vec(),
            seen: Vec::new(),
            by: actor("ann"),
            run: Run::Real,
            commit: None,
        }
    }

    pub(crate) fn undo_order(plan: PlanId) -> UndoRequest {
        UndoRequest {
            plan,
            changeset: None,
            seen: None,
            by: actor("ann"),
            run: Run::Real,
        }
    }

    /// Ends the service.
    pub(crate) async fn stop(self) {
        self.plans.close();
        let tasks = self.tasks.clone();
        drop(self);
        tokio::time::timeout(PATIENCE, tasks.finished()).await.unwrap();
    }
}
