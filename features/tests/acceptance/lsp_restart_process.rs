//! The servers of `lsp_restart.feature` as real processes: the fault server under a keeper, spoken to by our client.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::{Duration, Instant},
};

use eventlog::{Log, SqliteOptions};
use kernel::{CancellationToken, Deadline, Scope, Slot, SystemClock};
use lsp::{
    Client, ClientSettings, Connection, EndReason, Failure, Incoming, Launch, LaunchFailure, ResponseError,
    RunningServer, ServerExit, ServerGeneration, ServerKey,
};
use process::{
    Child, Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError,
    StopPlan, Tasks,
};
use protocol::{BootId, HomeId};
use serde_json::{Value, json, value::RawValue};
use tempfile::TempDir;

use crate::lsp_restart_transport::{Direct, EXIT_CODE, LAST_WORDS, Subject};

/// Stands in the environment of every server, so that it is found in `/proc` whoever its parent is by then.
const MARK: &str = "TIDELOCK_SCENARIO";

/// Far more than any step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that has been asked to end, or whose pipes are closed, does so; if it does not, it is made to.
const STOP: StopPlan = StopPlan {
    polite: Duration::from_secs(5),
    term: Duration::from_secs(5),
    kill: Duration::from_secs(10),
};

/// Launches fault servers. Clones are the same launcher.
#[derive(Clone)]
pub(crate) struct RealServers {
    shared: Arc<Shared>,
}

struct Shared {
    processes: Processes,
    tasks: Tasks,
    directory: TempDir,
    mark: String,
    /// Guards what the next servers do, and all launches so far.
    script: Mutex<Script>,
}

struct Script {
    at_initialize: AtInitialize,
    launches: Vec<Arc<Launched>>,
    /// The one that was killed last. Another one may have taken its place by now.
    killed: Option<RealServer>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AtInitialize {
    Answers,
    Hangs,
}

/// One launch. It is there before its process is, so that what it is told meanwhile is not lost.
struct Launched {
    at_initialize: AtInitialize,
    /// The server hangs until this file exists.
    go: PathBuf,
    told: Slot<Told>,
    server: OnceLock<RealServer>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    Nothing,
    Fail,
}

/// A fault server that runs.
#[derive(Clone)]
pub(crate) struct RealServer {
    client: Client,
    child: Child,
}

/// What servers say by themselves is of no interest here.
#[derive(Debug)]
struct Deaf;

impl Incoming for Deaf {
    fn notification(&self, _: &str, _: Option<&RawValue>) {}

    fn request(&self, _: &str, _: Option<&RawValue>) -> Result<Value, ResponseError> {
        Ok(Value::Null)
    }
}

fn deadline() -> Deadline {
    Deadline::after(&SystemClock::shared(), PATIENCE)
}

/// The marks of one run of the scenarios begin with this.
fn mark_of(subject: Subject) -> String {
    format!("{MARK}={}-{subject:?}-", std::process::id())
}

/// How many processes carry a mark, as the machine sees it. One that has ended and was not waited for carries none.
fn count_marked(mark: &str) -> usize {
    let is_marked = |directory: PathBuf| {
        let variables = fs::read(directory.join("environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        variables.any(|variable| variable.starts_with(mark.as_bytes()))
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| is_marked(entry.path())).count()
}

/// Waits until no server of the scenarios is left. Those of a scenario that fails half-way go when their keepers
/// notice that nobody speaks to them any more.
pub(crate) fn nothing_is_left(subject: Subject) {
    let (mark, began) = (mark_of(subject), Instant::now());
    loop {
        let left = count_marked(&mark);
        if left == 0 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{left} servers are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The fault server. It is beside the tests if the whole workspace was built, and is built otherwise.
fn fault_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let profile = own.ancestors().nth(2).unwrap();
        let program = profile.join("fault-server");
        if !program.exists() {
            let name = match profile.file_name().and_then(|name| name.to_str()) {
                Some("debug") | None => "dev",
                Some(other) => other,
            };
            let built = Command::new(env!("CARGO"))
                .args([
                    "build",
                    "--quiet",
                    "-p",
                    "lsp",
                    "--bin",
                    "fault-server",
                    "--profile",
                    name,
                ])
                .arg("--target-dir")
                .arg(profile.parent().unwrap())
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status();
            assert!(built.unwrap().success(), "the fault server cannot be built");
        }
        program
    })
}

impl RealServers {
    pub(crate) async fn open(subject: Subject) -> Self {
        let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::default());
        let options = SqliteOptions {
            path: directory.path().join("log.sqlite"),
        };
        let boot_id = BootId::generate();
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared()).unwrap(),
            home_id: HomeId::generate(),
            boot_id,
            keeper: KeeperProgram::At(fault_server().to_owned()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        Self {
            shared: Arc::new(Shared {
                processes,
                tasks,
                directory,
                mark: format!("{}{boot_id}", mark_of(subject)),
                script: Mutex::new(Script {
                    at_initialize: AtInitialize::Answers,
                    launches: Vec::new(),
                    killed: None,
                }),
            }),
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.shared.script.lock().unwrap()
    }

    fn begin(&self) -> Arc<Launched> {
        let mut script = self.script();
        let go = format!("go-{}", script.launches.len());
        let launched = Arc::new(Launched {
            at_initialize: script.at_initialize,
            go: self.shared.directory.path().join(go),
            told: Slot::new(Told::Nothing),
            server: OnceLock::new(),
        });
        script.launches.push(Arc::clone(&launched));
        launched
    }

    fn spec(&self, launched: &Launched, generation: ServerGeneration) -> Spec {
        let script = match launched.at_initialize {
            AtInitialize::Answers => json!({}),
            AtInitialize::Hangs => json!({"initialize": {"hold_until_file": launched.go}}),
        };
        let (name, value) = self.shared.mark.split_once('=').unwrap();
        Spec {
            program: fault_server().to_owned(),
            arguments: vec!["--script".into(), script.to_string().into()],
            directory: self.shared.directory.path().to_owned(),
            environment: [(name.into(), value.into())].into(),
            owner: "scenario".to_owned(),
            reason: "to be restarted".to_owned(),
            generation: generation.get(),
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: None,
        }
    }

    fn newest(&self) -> RealServer {
        let script = self.script();
        let newest = script.launches.last().expect("something was launched");
        newest.server.get().expect("it runs").clone()
    }
}

impl Launch for RealServers {
    type Server = RealServer;

    fn knows(&self, _: &ServerKey) -> bool {
        true
    }

    async fn launch(
        &self,
        _: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<RealServer, LaunchFailure> {
        let launched = self.begin();
        let spec = self.spec(&launched, generation);
        let child = self.shared.processes.spawn(spec).await;
        let child = child.map_err(|error| Failure::new(error.to_string()))?;
        let connection = Connection::new(child.stdout().unwrap(), child.stdin().unwrap());
        let client = Client::start(
            connection,
            ClientSettings::default(),
            Arc::new(Deaf),
            &self.shared.tasks,
            SystemClock::shared(),
        );
        let server = launched.server.get_or_init(|| RealServer { client, child });
        let fails = launched
            .told
            .wait_until(|told| *told == Told::Fail, Deadline::never(), scope);
        let is_up = tokio::select! {
            answer = server.client.request("initialize", &json!({}), &Deadline::never(), scope) => answer.is_ok(),
            Ok(_) = fails => {
                let words = json!({"code": EXIT_CODE, "stderr": LAST_WORDS});
                drop(server.client.request("fault/exit", &words, &deadline(), scope).await);
                false
            }
        };
        if is_up {
            return Ok(server.clone());
        }
        server.client.close("the server did not come up");
        let ended = server.child.stop(STOP).await;
        Err(server.failure("the server ended while it was starting", Some(ended.exit)))
    }
}

impl RealServer {
    fn failure(&self, message: &str, exit: Option<Exit>) -> Failure {
        Failure {
            message: message.to_owned(),
            exit: match exit {
                Some(Exit::Code(code)) => Some(ServerExit::Code(code)),
                Some(Exit::Signal(signal)) => Some(ServerExit::Signal(signal)),
                Some(Exit::Unknown) | None => None,
            },
            stderr_tail: self.child.stderr_tail(),
        }
    }
}

impl RunningServer for RealServer {
    async fn ended(&self) -> EndReason {
        tokio::select! {
            biased;
            ended = self.child.ended() => self.failure("the process ended", Some(ended.exit)),
            closed = self.client.closed() => self.failure(&closed.to_string(), None),
        }
    }

    async fn stop(&self) {
        let nobody = CancellationToken::new();
        let asked = self
            .client
            .request("shutdown", &(), &deadline(), &nobody.scope())
            .await;
        if asked.is_ok() {
            drop(self.client.notify("exit", &(), &deadline()).await);
            drop(self.client.flush(&deadline()).await);
        }
        self.client.close("the server was stopped");
        self.child.stop(STOP).await;
    }

    async fn probe(&self, _: &Deadline) -> Result<(), String> {
        Ok(())
    }
}

impl Direct for RealServers {
    fn hang_at_initialize(&self) {
        self.script().at_initialize = AtInitialize::Hangs;
    }

    fn answer_from_now_on(&self) {
        self.script().at_initialize = AtInitialize::Answers;
    }

    fn answer_initialize(&self) {
        for launched in &self.script().launches {
            fs::write(&launched.go, "").unwrap();
        }
    }

    fn fail_at_initialize(&self) {
        for launched in &self.script().launches {
            let seen = launched.told.read();
            launched.told.transition(seen.generation, Told::Fail).unwrap();
        }
    }

    fn die(&self) {
        let newest = self.newest();
        let pid = i32::try_from(newest.child.pid()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        self.script().killed = Some(newest);
    }

    fn is_death_known(&self) -> bool {
        let script = self.script();
        let killed = script.killed.as_ref().expect("one was killed");
        killed.client.why_closed().is_some()
    }

    fn launched(&self) -> usize {
        self.script().launches.len()
    }

    fn alive(&self) -> usize {
        count_marked(&self.shared.mark)
    }
}
