//! A service on a log of its own, with a workspace, which can be closed and opened again as after a restart.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::{Faults, Log, Sequence, SqliteOptions};
use kernel::{CancellationToken, Clock, Deadline, SystemClock};
use plans::{LandingSteps, Plans, PlansOptions, PlansSettings};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{AgentChoice, AgentKind, BootId, HomeId, IfBusy, SessionId, TurnId};
use sessions::{
    Accepted, Agent, AgentEnd, AgentInfo, AgentTurn, ContextFinder, LanguageError, LanguageOrder, Languages,
    NewSession, NewTurn, NoContextFinder, Ports, Prompt, Readiness, RunOn, Session, Sessions,
    SessionsOptions, SessionsSettings, Sharing, Shell, ShellEnd, ShellError, ShellOrder, Turn, TurnEvent,
    from_log,
};
use tokio::sync::{mpsc, oneshot};

/// Nothing in these tests takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Agents by their names.
pub(crate) type Agents = BTreeMap<String, Arc<dyn Agent>>;

/// A service and a workspace.
pub(crate) struct Kit {
    pub(crate) sessions: Sessions,
    pub(crate) log: Log,
    /// What goes wrong with the log.
    pub(crate) faults: Faults,
    pub(crate) plans: Plans,
    pub(crate) workspace: PathBuf,
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) home_id: HomeId,
    pub(crate) tasks: Tasks,
    pub(crate) agents: BTreeMap<String, Arc<dyn Agent>>,
    pub(crate) settings: SessionsSettings,
    pub(crate) finder: Arc<dyn ContextFinder>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) _directory: tempfile::TempDir,
}

/// An agent that a test leads by the hand: each turn of it comes out of a queue, and the test says how it ends.
#[derive(Debug)]
pub(crate) struct Puppet {
    turns: mpsc::Sender<Led>,
    /// Guards where the turns come out; held to take one.
    led: tokio::sync::Mutex<mpsc::Receiver<Led>>,
}

/// A turn that a test leads.
#[derive(Debug)]
pub(crate) struct Led {
    pub(crate) turn: AgentTurn,
    end: oneshot::Sender<AgentEnd>,
}

impl Led {
    pub(crate) fn end(self, end: AgentEnd) {
        self.end.send(end).unwrap();
    }
}

impl Puppet {
    pub(crate) fn new() -> Arc<Self> {
        let (turns, led) = mpsc::channel(1000);
        Arc::new(Self {
            turns,
            led: tokio::sync::Mutex::new(led),
        })
    }

    /// The next turn that begins.
    pub(crate) async fn next(&self) -> Led {
        let mut led = self.led.lock().await;
        tokio::time::timeout(PATIENCE, led.recv()).await.unwrap().unwrap()
    }

    /// Whether a turn has begun that nobody has taken.
    pub(crate) async fn has_more(&self) -> bool {
        !self.led.lock().await.is_empty()
    }
}

#[async_trait]
impl Agent for Puppet {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            name: "puppet".to_owned(),
            kind: AgentKind::Rehearsal,
            description: "does what the test says".to_owned(),
            readiness: Readiness::Ready,
        }
    }

    async fn run(&self, turn: AgentTurn) -> AgentEnd {
        let scope = turn.scope.clone();
        let (end, ended) = oneshot::channel();
        self.turns.send(Led { turn, end }).await.unwrap();
        tokio::select! {
            end = ended => end.unwrap_or(AgentEnd::Cancelled),
            _ = scope.wait() => AgentEnd::Cancelled,
        }
    }
}

/// A shell that says the line and does nothing.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    pub(crate) lines: Mutex<Vec<String>>,
}

#[async_trait]
impl Shell for Echo {
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
        self.lines.lock().unwrap().push(order.line.clone());
        output.send(Bytes::from(format!("{}\n", order.line))).await.ok();
        Ok(ShellEnd {
            job: protocol::JobId::generate(),
            exit_code: Some(0),
            text: "exit 0".to_owned(),
        })
    }
}

/// Knows no language.
#[derive(Debug)]
pub(crate) struct NoLanguages;

#[async_trait]
impl Languages for NoLanguages {
    fn verbs(&self) -> Vec<&'static str> {
        vec!["hover"]
    }

    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError> {
        Ok(serde_json::json!({ "asked": order.verb, "path": order.path }).to_string())
    }
}

impl Kit {
    /// A service with a repository.
    pub(crate) async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    /// The same, with other agents and settings.
    pub(crate) async fn with(adjust: impl FnOnce(&mut Agents, &mut SessionsSettings)) -> Self {
        Self::with_finder(Arc::new(NoContextFinder), adjust).await
    }

    /// A service whose time a test makes.
    pub(crate) async fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::with_all(Arc::new(NoContextFinder), clock, |_, _| {}).await
    }

    /// The same, with somebody who finds context.
    pub(crate) async fn with_finder(
        finder: Arc<dyn ContextFinder>,
        adjust: impl FnOnce(&mut Agents, &mut SessionsSettings),
    ) -> Self {
        Self::with_all(finder, SystemClock::shared(), adjust).await
    }

    async fn with_all(
        finder: Arc<dyn ContextFinder>,
        clock: Arc<dyn Clock>,
        adjust: impl FnOnce(&mut Agents, &mut SessionsSettings),
    ) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("sessions")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        fs::create_dir(&workspace).unwrap();
        let made = Command::new("sh")
            .args([
                "-c",
                "git init -q . && echo hello > README.md && mkdir src && echo 'fn main() {}' > src/main.rs && git add . && git -c user.name=a -c user.email=a@b commit -qm first",
            ])
            .current_dir(&workspace)
            .status();
        assert!(made.unwrap().success());
        let options = SqliteOptions {
            path: root.join("log.sqlite"),
        };
        let faults = Faults::default();
        let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
        let log = log.with_faults(&faults);
        let home_id = HomeId::generate();
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id,
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_sessions-test-keeper").into()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let (plans, _) = Plans::open(PlansOptions {
            log: log.clone(),
            directory: root.join("plans"),
            guarded: Vec::new(),
            home_id,
            processes,
            environment: BTreeMap::new(),
            settings: PlansSettings::default(),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
            steps: LandingSteps::default(),
        })
        .await
        .unwrap();
        let puppet = Puppet::new();
        let mut settings = SessionsSettings {
            default_agent: "puppet".to_owned(),
            ..SessionsSettings::default()
        };
        let mut agents: BTreeMap<String, Arc<dyn Agent>> = BTreeMap::new();
        agents.insert("puppet".to_owned(), Arc::clone(&puppet) as Arc<dyn Agent>);
        adjust(&mut agents, &mut settings);
        let sessions = open(
            &log,
            &plans,
            home_id,
            (&agents, &settings, &finder),
            (&tasks, &clock),
        )
        .await;
        Self {
            sessions,
            log,
            faults,
            plans,
            workspace,
            puppet,
            home_id,
            tasks,
            agents,
            settings,
            finder,
            clock,
            _directory: directory,
        }
    }

    /// Another life of the daemon on the same log, as if this one had been killed: it is still there, and knows nothing of it.
    pub(crate) async fn next_life(&self) -> Sessions {
        open(
            &self.log,
            &self.plans,
            self.home_id,
            (&self.agents, &self.settings, &self.finder),
            (&self.tasks, &self.clock),
        )
        .await
    }

    pub(crate) async fn session(&self) -> SessionId {
        let created = self.sessions.create(NewSession {
            directory: self.workspace.clone(),
            title: String::new(),
            agent: AgentChoice {
                name: self.settings.default_agent.clone(),
                ..AgentChoice::default()
            },
            rules: Vec::new(),
            plan: None,
            by: "ann".into(),
        });
        created.await.unwrap().id
    }

    pub(crate) async fn send(&self, session: SessionId, text: &str) -> Accepted {
        self.sessions.start_turn(session, prompt(text)).await.unwrap()
    }

    pub(crate) async fn get(&self, session: SessionId) -> Session {
        self.sessions.get(session).await.unwrap()
    }

    /// Waits until a turn is over.
    pub(crate) async fn end(&self, turn: TurnId) -> Turn {
        let scope = CancellationToken::new().scope();
        let deadline = Deadline::after(&SystemClock::shared(), PATIENCE);
        let turn = self.sessions.wait(turn, &deadline, &scope).await.unwrap();
        assert!(turn.record.state.is_terminal(), "{turn:?}");
        turn
    }

    /// Waits until no turn has a place any more: one gives its place back a moment after its end is on disk.
    pub(crate) async fn at_rest(&self) {
        let deadline = Deadline::after(&SystemClock::shared(), PATIENCE);
        self.sessions.drain(&deadline).await;
        assert_eq!(self.sessions.counts().running, 0);
    }

    /// Waits until a turn has an event of this kind.
    pub(crate) async fn events_until(&self, turn: TurnId, kind: &str) -> Vec<TurnEvent> {
        let waiting = async {
            loop {
                let events = self.events(turn).await;
                if events.iter().any(|event| event.kind() == kind) {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }

    /// All events of a turn.
    pub(crate) async fn events(&self, turn: TurnId) -> Vec<TurnEvent> {
        let stream = eventlog::StreamId::new(&format!("turn/{turn}")).unwrap();
        let (mut events, mut after) = (Vec::new(), Sequence::default());
        loop {
            let page = self.log.read(&stream, after, 500).await.unwrap();
            events.extend(page.events.iter().filter_map(from_log));
            match page.events.last() {
                Some(last) => after = last.sequence,
                None => return events,
            }
        }
    }
}

pub(crate) fn prompt(text: &str) -> NewTurn {
    NewTurn {
        prompt: Prompt {
            text: text.to_owned(),
            attachments: Vec::new(),
        },
        agent: None,
        if_busy: IfBusy::Queue,
        seen: None,
        finish: None,
        idempotency_key: None,
        run_on: RunOn::ItsMachine,
        by: "ann".into(),
    }
}

/// Opens the service, as another life of the same home.
pub(crate) async fn open(
    log: &Log,
    plans: &Plans,
    home_id: HomeId,
    (agents, settings, finder): (&Agents, &SessionsSettings, &Arc<dyn ContextFinder>),
    (tasks, clock): (&Tasks, &Arc<dyn Clock>),
) -> Sessions {
    Sessions::open(SessionsOptions {
        log: log.clone(),
        sharing: Sharing::Alone,
        home_id,
        boot_id: BootId::generate(),
        plans: plans.clone(),
        ports: Ports {
            shell: Arc::new(Echo::default()),
            finisher: Arc::new(sessions::NoPlanFinisher),
            languages: Arc::new(NoLanguages),
            context: Arc::clone(finder),
        },
        agents: agents.clone(),
        settings: settings.clone(),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
    })
    .await
    .unwrap()
}
