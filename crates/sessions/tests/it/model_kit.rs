//! A scripted server of models, and the agent `model` in front of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kernel::{BreakerSettings, CircuitBreaker, SystemClock};
use protocol::{SessionId, ToolState, TurnState};
use serde_json::{Value, json};
use sessions::agents::model::{ApiKey, ModelAgent, ModelSettings};
use sessions::{NewTurn, Turn, TurnEvent};

use crate::finder::FakeFinder;
use crate::kit::{Kit, prompt};

/// The key of the tests. It must not be seen anywhere.
pub(crate) const KEY: &str = "sk-a-key-of-the-tests";

/// A scripted server. It is gone when this is dropped, or when the test is killed.
pub(crate) struct Server {
    child: Child,
    pub(crate) base_url: String,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(script: &Value) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (script_file, log) = (directory.path().join("script.json"), directory.path().join("log"));
        fs::write(&script_file, script.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_model-server"))
            .args(["--until-eof", "--script"])
            .arg(&script_file)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut base_url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut base_url).unwrap();
        Self {
            child,
            base_url: base_url.trim().to_owned(),
            log,
            _directory: directory,
        }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A service whose default agent asks a scripted server.
pub(crate) struct ModelKit {
    pub(crate) kit: Kit,
    pub(crate) server: Server,
    pub(crate) breaker: CircuitBreaker,
    pub(crate) finder: Arc<FakeFinder>,
}

/// A turn that is over.
pub(crate) struct Ended {
    pub(crate) turn: Turn,
    pub(crate) events: Vec<TurnEvent>,
}

impl ModelKit {
    /// With a server that follows this script.
    pub(crate) async fn new(script: Value) -> Self {
        Self::with(script, |_| {}).await
    }

    /// With other settings.
    pub(crate) async fn with(script: Value, adjust: impl FnOnce(&mut ModelSettings)) -> Self {
        // One fault does not open the circuit of these tests, unless a server wishes so.
        let breaker = BreakerSettings {
            failure_threshold: 1_000,
            ..BreakerSettings::default()
        };
        Self::with_breaker(script, breaker, adjust).await
    }

    /// With another breaker.
    pub(crate) async fn with_breaker(
        script: Value,
        breaker: BreakerSettings,
        adjust: impl FnOnce(&mut ModelSettings),
    ) -> Self {
        let server = Server::start(&script);
        let mut settings = ModelSettings {
            base_url: server.base_url.clone(),
            key: ApiKey::new(KEY),
            model: "m-1".to_owned(),
            // What a turn begins with has tests of its own.
            opening_context_tokens: 0,
            ..ModelSettings::default()
        };
        adjust(&mut settings);
        let clock = SystemClock::shared();
        let breaker = CircuitBreaker::new(breaker, clock.clone()).unwrap();
        let agent = ModelAgent::new(settings, breaker.clone(), clock);
        let finder = Arc::new(FakeFinder::default());
        let kit = Kit::with_finder(finder.clone(), |agents, settings| {
            agents.insert("model".to_owned(), agent);
            settings.default_agent = "model".to_owned();
        })
        .await;
        Self {
            kit,
            server,
            breaker,
            finder,
        }
    }

    /// Sends a prompt, and waits for the end of its turn.
    pub(crate) async fn ask(&self, session: SessionId, text: &str) -> Ended {
        self.ask_with(session, prompt(text)).await
    }

    pub(crate) async fn ask_with(&self, session: SessionId, new: NewTurn) -> Ended {
        let accepted = self.kit.sessions.start_turn(session, new).await.unwrap();
        let turn = self.kit.end(accepted.turn.id).await;
        let events = self.kit.events(turn.id).await;
        let ended = Ended { turn, events };
        ended.check();
        ended
    }

    /// The same in a session of its own.
    pub(crate) async fn ask_once(&self, text: &str) -> Ended {
        self.ask(self.kit.session().await, text).await
    }
}

impl Ended {
    /// What holds for every turn: the key is nowhere, and no call of a tool is left open.
    fn check(&self) {
        let all = format!("{:?} {:?}", self.turn, self.events);
        assert!(!all.contains(&KEY[..10]), "the key can be seen: {all}");
        let (mut called, mut ended) = (Vec::new(), Vec::new());
        for event in &self.events {
            match event {
                TurnEvent::ToolCall { item, .. } => called.push(*item),
                TurnEvent::ToolEnded { item, .. } => ended.push(*item),
                _ => {}
            }
        }
        ended.sort_unstable();
        assert_eq!(called, ended, "{all}");
    }

    /// The state and the code.
    pub(crate) fn end(&self) -> (TurnState, &str) {
        let error = self.turn.record.error.as_ref();
        (
            self.turn.record.state,
            error.map_or("", |error| error.code.as_str()),
        )
    }

    /// Why it ended, in words.
    pub(crate) fn why(&self) -> &str {
        self.turn
            .record
            .error
            .as_ref()
            .map_or("", |error| error.text.as_str())
    }

    /// All that the model said.
    pub(crate) fn text(&self) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Text { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect()
    }

    /// All that it thought.
    pub(crate) fn reasoning(&self) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Reasoning { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The codes of what went wrong on the way.
    pub(crate) fn troubles(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Trouble { code, .. } => Some(code.as_str()),
                _ => None,
            })
            .collect()
    }

    /// How calls of tools ended, in order of their ends.
    pub(crate) fn tools(&self) -> Vec<ToolState> {
        self.events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::ToolEnded { state, .. } => Some(*state),
                _ => None,
            })
            .collect()
    }
}

/// Quick enough for tests, and slow enough for a busy machine.
pub(crate) const SHORT: Duration = Duration::from_millis(700);

/// A list of responses.
pub(crate) fn responses(list: &[Value]) -> Value {
    json!({ "responses": list })
}

/// A response of these steps.
pub(crate) fn steps(list: &[Value]) -> Value {
    json!({ "steps": list })
}
