//! A service whose agent is a scripted program over the protocol, in a real sandbox.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::{Log, Sequence, SqliteOptions, TailItem};
use kernel::{CancellationToken, SystemClock};
use plans::{FileFound, RelPath};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId, SessionId, TurnId, TurnState};
use sessions::agents::acp::{AcpAgent, AcpSettings};
use sessions::{NoContextFinder, Ports, Shell, ShellEnd, ShellError, ShellOrder, Turn, TurnEvent, from_log};
use tokio::sync::mpsc;

use crate::kit::{Kit, NoLanguages, PATIENCE};

/// A service whose agent is the scripted one.
pub(crate) struct AcpKit {
    pub(crate) kit: Kit,
    pub(crate) processes: Processes,
    pub(crate) shell: Arc<Terminal>,
    pub(crate) state: PathBuf,
    _directory: tempfile::TempDir,
}

/// A line, its directory and its environment.
type Ordered = (String, String, Vec<(String, String)>);

/// Says the line; one that begins with `hang` ends when it is cancelled.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    pub(crate) orders: Mutex<Vec<Ordered>>,
    pub(crate) ended: Mutex<Vec<String>>,
}

#[async_trait]
impl Shell for Terminal {
    async fn run(&self, order: ShellOrder, output: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
        let asked = (order.line.clone(), order.directory, order.environment);
        self.orders.lock().unwrap().push(asked);
        if order.line == "missing" {
            let text = "there is no such command".to_owned();
            return Err(ShellError { text });
        }
        let said = format!("{} says hello\n", order.line);
        output.send(Bytes::from(said)).await.ok();
        let hangs = order.line.starts_with("hang");
        if hangs {
            order.scope.wait().await;
        }
        self.ended.lock().unwrap().push(order.line);
        Ok(ShellEnd {
            job: protocol::JobId::generate(),
            exit_code: (!hangs).then_some(0),
            text: if hangs { "cancelled" } else { "exit 0" }.to_owned(),
        })
    }
}

impl AcpKit {
    pub(crate) async fn new(agent: &str) -> Self {
        Self::with(agent, |_| {}).await
    }

    pub(crate) async fn with(agent: &str, adjust: impl FnOnce(&mut AcpSettings)) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = directory.path().canonicalize().unwrap();
        let options = SqliteOptions {
            path: root.join("processes.sqlite"),
        };
        let tasks = Tasks::default();
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared()).unwrap(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_sessions-test-keeper").into()),
            tasks: tasks.clone(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let state = root.join("state");
        fs::create_dir(&state).unwrap();
        let mut settings = AcpSettings {
            name: "scripted".to_owned(),
            command: vec![env!("CARGO_BIN_EXE_acp-test-agent").to_owned()],
            environment: BTreeMap::from([
                ("ACP_AGENT".into(), agent.into()),
                ("ACP_AGENT_STATE".into(), state.clone().into()),
            ]),
            write_below: vec![state.clone()],
            ..AcpSettings::default()
        };
        adjust(&mut settings);
        let shell = Arc::new(Terminal::default());
        let ports = Ports {
            shell: Arc::clone(&shell) as Arc<dyn Shell>,
            finisher: Arc::new(sessions::NoPlanFinisher),
            languages: Arc::new(NoLanguages),
            context: Arc::new(NoContextFinder),
        };
        let agent = AcpAgent::new(settings, processes.clone(), ports, tasks, SystemClock::shared());
        let kit = Kit::with(|agents, settings| {
            agents.insert("scripted".to_owned(), agent);
            settings.default_agent = "scripted".to_owned();
        })
        .await;
        Self {
            kit,
            processes,
            shell,
            state,
            _directory: directory,
        }
    }

    /// Runs one prompt to its end. When it is over, no process of the agent is left.
    pub(crate) async fn run(&self, session: SessionId, text: &str) -> (Turn, Vec<String>) {
        let turn = self.kit.send(session, text).await.turn.id;
        self.ended(turn).await
    }

    pub(crate) async fn ended(&self, turn: TurnId) -> (Turn, Vec<String>) {
        let ended = self.kit.end(turn).await;
        assert_eq!(
            self.processes.count(),
            0,
            "a process is left: {:?}",
            self.processes.list()
        );
        (ended, story(&self.kit.events(turn).await))
    }

    /// Runs one prompt in a session of its own.
    pub(crate) async fn once(&self, text: &str) -> (Turn, Vec<String>) {
        let session = self.kit.session().await;
        self.run(session, text).await
    }

    /// What is at a path of the plan of a session.
    pub(crate) async fn file(&self, session: SessionId, path: &str) -> Option<String> {
        let plan = self.kit.get(session).await.record.plan?;
        let path = RelPath::from_bytes(path.as_bytes()).unwrap();
        match self.kit.plans.read_file(plan, Some(path)).await.ok()? {
            FileFound::File { content, .. } => Some(String::from_utf8(content).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for an event of a turn.
    pub(crate) async fn until(&self, turn: TurnId, is_it: impl Fn(&TurnEvent) -> bool) -> TurnEvent {
        let stream = eventlog::StreamId::new(&format!("turn/{turn}")).unwrap();
        let token = CancellationToken::new();
        let mut tail = self.kit.log.tail(&stream, Sequence::default(), &token.scope());
        let found = async {
            loop {
                if let TailItem::Event(event) = tail.next().await.unwrap()
                    && let Some(event) = from_log(&event)
                    && is_it(&event)
                {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap()
    }
}

pub(crate) fn says(words: &'static str) -> impl Fn(&TurnEvent) -> bool {
    move |event| matches!(event, TurnEvent::Text { delta, .. } if delta.contains(words))
}

/// Events in short. Pieces of one item are one line, and what has ids in it is left out.
pub(crate) fn story(events: &[TurnEvent]) -> Vec<String> {
    let mut lines: Vec<(Option<u64>, String)> = Vec::new();
    for event in events {
        let (item, line) = match event {
            TurnEvent::Text { item, delta } | TurnEvent::Reasoning { item, delta } => {
                match lines.last_mut().filter(|(last, _)| *last == Some(*item)) {
                    Some((_, line)) => {
                        line.push_str(delta);
                        continue;
                    }
                    None => (Some(*item), format!("{}: {delta}", event.kind())),
                }
            }
            TurnEvent::ToolCall { item, call, tool } => (None, format!("{item} {tool} called {call}")),
            TurnEvent::ToolStarted {
                item,
                title,
                arguments,
            } => (None, format!("{item} started {title} {arguments}")),
            TurnEvent::ToolOutput { item, delta } => (None, format!("{item} output {delta:?}")),
            TurnEvent::ToolEnded {
                item, state, answer, ..
            } => (None, format!("{item} {state:?} {answer:?}")),
            TurnEvent::PermissionAsked {
                item,
                tool,
                subject,
                options,
                ..
            } => {
                let options: Vec<_> = options
                    .iter()
                    .map(|option| format!("{}={:?}={}", option.id, option.answer, option.label))
                    .collect();
                (
                    None,
                    format!("asked {item:?} {tool} {subject:?} {}", options.join(" ")),
                )
            }
            TurnEvent::PermissionAnswered { answer, by, .. } => (None, format!("answered {answer:?} {by}")),
            TurnEvent::PlanChanged { files, paths, .. } => {
                (None, format!("plan: {files} {}", paths.join(" ")))
            }
            TurnEvent::Trouble { code, .. } => (None, format!("trouble: {code}")),
            _ => continue,
        };
        lines.push((item, line));
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// How a turn ended: its state, the code and the words.
pub(crate) fn error_of(turn: &Turn) -> (TurnState, &str, &str) {
    let error = turn.record.error.as_ref();
    let (code, text) = error.map_or(("", ""), |error| (&error.code, &error.text));
    (turn.record.state, code, text)
}

pub(crate) fn own(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}
