//! The real fault server as a child of the test.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
};

use kernel::{Clock, Deadline, SystemClock};
use lsp::{Client, ClientSettings, Connection, Incoming, RequestError};
use process::Tasks;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::unix::pipe;

use crate::support::{Log, live, patient, soon, until};

/// What a client and its server run over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    Stdio,
    Tcp,
}

/// A client and the process that it speaks to. The process ends with it.
pub(crate) struct Real {
    pub(crate) client: Client,
    pub(crate) log: Arc<Log>,
    pub(crate) tasks: Tasks,
    pub(crate) directory: TempDir,
    child: Child,
}

/// How to start it.
pub(crate) struct Start {
    pub(crate) transport: Transport,
    pub(crate) script: Value,
    pub(crate) arguments: Vec<&'static str>,
    pub(crate) settings: ClientSettings,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            transport: Transport::Stdio,
            script: json!({}),
            arguments: Vec::new(),
            settings: ClientSettings::default(),
            clock: SystemClock::shared(),
        }
    }
}

impl Start {
    pub(crate) fn with(script: Value) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }

    /// Starts the server in a directory of its own, which has the files `pids` and `record`.
    pub(crate) async fn run(self) -> Real {
        self.run_in(tempfile::tempdir().unwrap()).await
    }

    pub(crate) async fn run_in(mut self, directory: TempDir) -> Real {
        for name in ["pids", "record"] {
            self.script[name] = json!(directory.path().join(name));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_fault-server"));
        command
            .args(&self.arguments)
            .args(["--script", &self.script.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.transport == Transport::Tcp {
            command.args(["--tcp", "0"]);
        }
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        let connection = match self.transport {
            Transport::Stdio => Connection::new(
                pipe::Receiver::from_owned_fd(stdout.into()).unwrap(),
                pipe::Sender::from_owned_fd(stdin.into()).unwrap(),
            ),
            Transport::Tcp => {
                let mut line = String::new();
                BufReader::new(stdout).read_line(&mut line).unwrap();
                let address = line.trim().strip_prefix("listening on ").unwrap();
                Connection::tcp(address.parse().unwrap(), &patient())
                    .await
                    .unwrap()
            }
        };
        let (log, tasks) = (Arc::new(Log::default()), Tasks::default());
        let incoming: Arc<dyn Incoming> = Arc::clone(&log) as _;
        Real {
            client: Client::start(connection, self.settings, incoming, &tasks, self.clock),
            log,
            tasks,
            directory,
            child,
        }
    }
}

impl Real {
    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, method: &str, params: impl Serialize) -> Result<Value, RequestError> {
        let reply = soon(self.client.request(method, &params, &patient(), &live())).await?;
        Ok(reply.parse().unwrap())
    }

    pub(crate) async fn tell(&self, method: &str, params: impl Serialize) {
        soon(self.client.notify(method, &params, &patient()))
            .await
            .unwrap();
    }

    /// Whether it still answers, with everything in order.
    pub(crate) async fn echoes(&self) -> bool {
        let params = json!({"text": "é😀"});
        self.ask("fault/echo", &params).await == Ok(params)
    }

    /// The process that was started; the server, unless there is a shim before it.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The process ids in this role, of all starts.
    pub(crate) fn pids(&self, role: &str) -> Vec<u32> {
        let lines = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
        let lines = lines.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines
            .filter(|line| line[1] == role)
            .map(|line| line[0].parse().unwrap())
            .collect()
    }

    /// The messages that the server has taken so far.
    pub(crate) fn recorded(&self) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.path("record")).unwrap_or_default();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the process has ended, and says how and with what last words. Nobody else may have its standard
    /// error open.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        let mut words = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut words).unwrap();
        (status.unwrap(), words)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // Whoever belongs to this test goes with it, also if it has failed.
        drop(self.child.kill());
        drop(self.child.wait());
        for role in ["server", "grandchild"] {
            self.pids(role).into_iter().for_each(kill_pid);
        }
    }
}

/// Kills a process of this test, if it is still there and what we take it for.
pub(crate) fn kill_pid(pid: u32) {
    if is_alive(pid) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        assert!(
            killed.is_ok() || killed == Err(rustix::io::Errno::SRCH),
            "{killed:?}"
        );
    }
}

/// Whether the fault server lives that had this process id.
pub(crate) fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.starts_with("Name:\tfault-server\n") && !status.contains("\nState:\tZ")
}

/// A deadline on a clock that is moved by hand.
pub(crate) fn after_seconds(clock: &Arc<dyn Clock>, seconds: u64) -> Deadline {
    Deadline::after(clock, std::time::Duration::from_secs(seconds))
}
