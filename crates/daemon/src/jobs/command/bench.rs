//! Helpers for tests of commands: a real keeper, and an output that can be inspected.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use eventlog::{BlobId, Log, SqliteOptions};
use jobs::{AttemptOutcome, AttemptVerdict, OutputError};
use kernel::{CancellationToken, Cause, SystemClock};
use plans::{Attribution, Changeset, CommandRun, Entrance, PlanError};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId, JobChannel, PlanId};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::super::environments::Environments;
use super::handler::{CommandHandler, Order, Tool};
use super::payload::{CommandLine, CommandPayload};
use super::sandbox::{SandboxAccess, Sandboxes};
use super::streams::Sink;
use crate::jobs::inputs::Inputs;

/// Long enough for anything that happens at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// More than any command here writes.
pub(super) const HEARD_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// The keeper is a binary of this crate's tests, and is built next to them.
pub(crate) fn keeper() -> KeeperProgram {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().nth(2).unwrap().join("daemon-test-keeper");
    assert!(path.exists(), "build it first: cargo build -p daemon --bins");
    KeeperProgram::At(path)
}

pub(super) struct Bench {
    pub(super) handler: CommandHandler,
    pub(super) sandboxes: Arc<FakeSandboxes>,
    pub(super) processes: Processes,
    pub(super) log: Log,
    pub(super) token: CancellationToken,
    pub(super) directory: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.sqlite");
        let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap();
        let processes = Processes::open(ProcessesOptions {
            log: log.clone(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: keeper(),
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("PWD", "/elsewhere"),
            ("WHOSE", "the daemon's"),
        ];
        let sandboxes = Arc::new(FakeSandboxes::default());
        let handler = CommandHandler::new(
            processes.clone(),
            log.clone(),
            (
                environment
                    .map(|(name, value)| (name.into(), value.into()))
                    .into(),
                Environments::open(
                    directory.path().join("environments"),
                    &Tasks::default(),
                    &CancellationToken::new().scope(),
                )
                .unwrap(),
            ),
            (
                SandboxAccess {
                    sandboxes: Arc::clone(&sandboxes) as Arc<dyn Sandboxes>,
                    write_below: Vec::new(),
                },
                Inputs::default(),
            ),
            SystemClock::shared(),
        );
        Self {
            handler,
            sandboxes,
            processes,
            log,
            token: CancellationToken::new(),
            directory,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn command(&self, line: CommandLine) -> CommandPayload {
        CommandPayload {
            line,
            directory: self.directory.path().to_str().unwrap().to_owned(),
            environment: None,
            environment_is_kept: false,
            is_of_agent: false,
            terminal: None,
            write_below: None,
            limits: process::Limits::default(),
            plan: None,
            attach_stdin: false,
        }
    }

    pub(super) fn shell(&self, line: &str) -> CommandPayload {
        self.command(CommandLine::Shell(line.to_owned()))
    }

    pub(super) async fn blob(&self, content: &[u8]) -> BlobId {
        self.log.put_blob(content).await.unwrap().0
    }

    pub(super) async fn run(
        &self,
        payload: &CommandPayload,
        stdin: Option<BlobId>,
        sink: &Heard,
    ) -> AttemptOutcome {
        self.run_bytes(payload.encode().unwrap(), stdin, sink).await
    }

    pub(super) async fn run_bytes(
        &self,
        payload: Vec<u8>,
        stdin: Option<BlobId>,
        sink: &Heard,
    ) -> AttemptOutcome {
        let order = Order {
            job: "test".to_owned(),
            reason: "to be looked at".to_owned(),
            submitted_by: "an agent".to_owned(),
            tool: Tool::Shell,
            attempt: 1,
            payload: payload.into(),
            stdin,
            scope: self.token.scope(),
        };
        let outcome = tokio::time::timeout(PATIENCE, self.handler.attempt(order, sink)).await;
        assert_eq!(self.processes.list(), [], "something runs after the answer");
        outcome.unwrap()
    }

    pub(super) fn cancel(&self) {
        self.token.cancel(Cause::new("a test", "it is time"));
    }
}

/// Sandboxes that are plain directories. The test chooses what they return.
#[derive(Debug, Default)]
pub(super) struct FakeSandboxes {
    /// Guards the result of the next `enter`.
    pub(super) entrance: Mutex<Option<Result<Entrance, PlanError>>>,
    /// Guards the result of the next `leave`.
    pub(super) found: Mutex<Option<Result<Option<Changeset>, PlanError>>>,
    /// Guards the recorded calls, as text.
    pub(super) happened: Mutex<Vec<String>>,
}

#[async_trait]
impl Sandboxes for FakeSandboxes {
    async fn enter(&self, plan: PlanId, stay: Attribution) -> Result<CommandRun, PlanError> {
        let Attribution {
            actor,
            tool,
            reason,
            job,
        } = stay;
        let words = format!(
            "{actor} enters with {tool} for {}: {reason}",
            job.unwrap_or_default()
        );
        self.happened.lock().unwrap().push(words);
        let entrance = self.entrance.lock().unwrap().take().unwrap()?;
        Ok(CommandRun {
            id: "stay".to_owned(),
            plan,
            entrance,
        })
    }

    async fn leave(&self, stay: &CommandRun) -> Result<Option<Changeset>, PlanError> {
        self.happened.lock().unwrap().push(format!("{} is over", stay.id));
        self.found.lock().unwrap().take().unwrap_or(Ok(None))
    }
}

/// The output of a command.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Guards the output so far.
    pub(super) said: Mutex<[Vec<u8>; 2]>,
    /// The error to return for output.
    pub(super) refusal: Option<OutputError>,
    /// If set, output is accepted only as the test allows it.
    pub(super) gate: Option<Semaphore>,
    /// Guards a stream that is refilled whenever output from it has been taken.
    pub(super) flood: Mutex<Option<fs::File>>,
}

impl Heard {
    pub(super) fn texts(&self) -> [String; 2] {
        let said = self.said.lock().unwrap();
        said.each_ref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

impl Sink for Heard {
    async fn take(&self, channel: JobChannel, bytes: &[u8]) -> Result<(), OutputError> {
        if let Some(gate) = &self.gate {
            drop(gate.acquire().await);
        }
        let place = match channel {
            JobChannel::Stdout => 0,
            JobChannel::Stderr => 1,
            JobChannel::Note => unreachable!("a command makes no remarks"),
        };
        let mut said = self.said.lock().unwrap();
        said[place].extend_from_slice(bytes);
        assert!(said[place].len() < HEARD_LIMIT_BYTES, "there is no end to it");
        drop(said);
        if let Some(stream) = &mut *self.flood.lock().unwrap() {
            while stream.write(&[b'x'; 4096]).is_ok() {}
        }
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

pub(super) fn outcome(verdict: AttemptVerdict, text: &str, result: Value) -> AttemptOutcome {
    AttemptOutcome {
        verdict,
        text: text.to_owned(),
        result,
    }
}

pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn code(code: i32) -> Value {
    json!({ "exit": { "code": code } })
}
