//! A service with a log of its own, scripts to be run by it, and a look at what is really there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::{Faults, HeadsQuery, Log, SqliteOptions, StoredHead};
use kernel::{Clock, SystemClock};
use process::{
    Child, Confinement, KeeperProgram, Limits, Processes, ProcessesOptions, SpawnError, Spec, StandardError,
    StopPlan, Tasks,
};
use protocol::{BootId, HomeId};

/// Long enough for anything that happens at all, on a machine that is busy with something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// TERM now, KILL soon.
pub(crate) const SHORT: StopPlan = StopPlan {
    polite: Duration::ZERO,
    term: Duration::from_millis(300),
    kill: Duration::from_secs(30),
};
/// Long enough to be told apart from [`SHORT`] by anybody.
pub(crate) const PATIENT: StopPlan = StopPlan {
    polite: Duration::ZERO,
    term: Duration::from_secs(600),
    kill: Duration::from_secs(600),
};

pub(crate) struct Service {
    pub(crate) processes: Processes,
    pub(crate) log: Log,
    /// What goes wrong with the log.
    pub(crate) faults: Faults,
    pub(crate) home_id: HomeId,
    pub(crate) boot_id: BootId,
    pub(crate) tasks: Tasks,
    pub(crate) directory: tempfile::TempDir,
    /// Stands in the environment of everything that is started here, so that it can be found again.
    pub(crate) mark: String,
}

pub(crate) fn test_keeper() -> PathBuf {
    env!("CARGO_BIN_EXE_test-keeper").into()
}

pub(crate) fn open_log(directory: &Path) -> Log {
    let options = SqliteOptions {
        path: directory.join("log.sqlite"),
    };
    Log::open_sqlite(&options, SystemClock::shared()).unwrap()
}

impl Service {
    pub(crate) async fn new() -> Self {
        Self::with_keeper(KeeperProgram::At(test_keeper())).await
    }

    pub(crate) async fn with_keeper(keeper: KeeperProgram) -> Self {
        Self::with_keeper_and_clock(keeper, SystemClock::shared()).await
    }

    pub(crate) async fn with_keeper_and_clock(keeper: KeeperProgram, clock: Arc<dyn Clock>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let log = open_log(directory.path()).with_faults(&faults);
        let (home_id, boot_id, tasks) = (HomeId::generate(), BootId::generate(), Tasks::default());
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id,
            boot_id,
            keeper,
            tasks: tasks.clone(),
            clock,
        })
        .await
        .unwrap();
        Self {
            processes,
            log,
            faults,
            home_id,
            mark: boot_id.to_string(),
            boot_id,
            tasks,
            directory,
        }
    }

    /// Another service on the same log, as after a crash of the first one.
    pub(crate) async fn successor(&self) -> Processes {
        Processes::open(ProcessesOptions {
            log: self.log.clone(),
            home_id: self.home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(test_keeper()),
            tasks: self.tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap()
    }

    /// A command of this service.
    pub(crate) fn spec(&self, program: &str, arguments: &[&str]) -> Spec {
        let variables = [("PATH", "/usr/bin:/bin"), ("MARK", &self.mark)];
        Spec {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: self.directory.path().to_owned(),
            environment: BTreeMap::from(variables.map(|(name, value)| (name.into(), value.into()))),
            owner: "test".to_owned(),
            reason: "to be looked at".to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: None,
        }
    }

    pub(crate) fn sh(&self, script: &str) -> Spec {
        self.spec("sh", &["-c", script])
    }

    pub(crate) async fn run(&self, script: &str) -> Child {
        self.processes.spawn(self.sh(script)).await.unwrap()
    }

    pub(crate) async fn refuse(&self, spec: Spec) -> SpawnError {
        match self.processes.spawn(spec).await {
            Ok(child) => panic!("{child:?} runs"),
            Err(error) => error,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The pids of what was started here and is alive.
    pub(crate) fn survivors(&self) -> Vec<u32> {
        marked(&format!("MARK={}", self.mark))
    }

    /// Status and content of each row, in order.
    pub(crate) async fn rows(&self) -> Vec<(String, serde_json::Value)> {
        let shown = |head: StoredHead| {
            let body = serde_json::from_slice(&head.head.body).unwrap();
            (head.head.status.to_string(), body)
        };
        let query = HeadsQuery {
            kind: Arc::from("process"),
            status: None,
            after: None,
            limit: 1000,
            order: eventlog::HeadsOrder::OldestFirst,
        };
        self.log
            .heads(query)
            .await
            .unwrap()
            .into_iter()
            .map(shown)
            .collect()
    }

    /// Waits until all rows are closed, and counts them.
    pub(crate) async fn closed_rows(&self) -> usize {
        let start = Instant::now();
        loop {
            let rows = self.rows().await;
            if rows.iter().all(|(status, _)| status == "ended") {
                return rows.len();
            }
            assert!(start.elapsed() < PATIENCE, "{rows:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until nothing that was started here is left, in no place.
    pub(crate) async fn nothing_left(&self) {
        until("every process is gone", || self.survivors().is_empty()).await;
        until("every task has ended", || self.tasks.running() == 0).await;
        assert_eq!(self.processes.list(), []);
        self.closed_rows().await;
        assert_eq!(zombies(), Vec::<u32>::new());
    }
}

/// A test that fails leaves nothing either.
impl Drop for Service {
    fn drop(&mut self) {
        kill_all(|| self.survivors());
    }
}

/// Kills what a test has left, again if it has started something meanwhile.
pub(crate) fn kill_all(left: impl Fn() -> Vec<u32>) {
    for _ in 0..10 {
        for pid in left() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Waits for something that must not take for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The number in a file, once it is there.
pub(crate) async fn pid_in(path: &Path) -> u32 {
    let read = || -> Option<u32> {
        let text = fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.trim().parse().ok()
    };
    until(&format!("{} holds a pid", path.display()), || read().is_some()).await;
    read().unwrap()
}

/// State and parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

pub(crate) fn parent_of(pid: u32) -> u32 {
    stat(pid).unwrap().1
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Children of this process that nobody has reaped.
fn zombies() -> Vec<u32> {
    let own = std::process::id();
    pids().filter(|pid| stat(*pid) == Some(('Z', own))).collect()
}

/// What is alive and has this variable.
pub(crate) fn marked(variable: &str) -> Vec<u32> {
    let has_it = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|one| one == variable.as_bytes())
    };
    pids().filter(|pid| is_alive(*pid)).filter(has_it).collect()
}

/// How many descriptors this process has open.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Stops a process. Until it runs next and takes the signal it goes on, so each of its threads is waited for.
pub(crate) async fn halt(pid: u32) {
    signal(pid, rustix::process::Signal::STOP);
    until("each thread has stopped", || is_halted(pid)).await;
}

fn is_halted(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut states = threads.map(|thread| fs::read_to_string(thread.path().join("status")));
    states.all(|state| state.is_ok_and(|state| state.contains("State:\tT")))
}
