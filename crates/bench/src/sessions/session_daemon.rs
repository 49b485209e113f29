//! A daemon of our own with a directory to work on, and the requests to it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::sse::Door;
use crate::http::HttpClient;
use crate::own_daemon::Daemon;

/// How long one request waits for a turn to end; the daemon's maximum.
const WAIT_MS: u64 = 60_000;

pub(super) struct SessionDaemon {
    pub(super) daemon: Daemon,
    pub(super) pid: u32,
    socket: PathBuf,
    token: String,
    workspace: TempDir,
}

impl SessionDaemon {
    pub(super) fn start(tidelock: &Path) -> Result<Self> {
        Self::around(Daemon::start(tidelock, |_| Ok(()))?, tempfile::tempdir()?)
    }

    fn around(daemon: Daemon, workspace: TempDir) -> Result<Self> {
        Ok(Self {
            pid: daemon.pid()?,
            socket: daemon.socket()?,
            token: daemon.token()?,
            daemon,
            workspace,
        })
    }

    /// The same home after something was done to it while no daemon used it.
    pub(super) fn restarted(self, between: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let Self {
            daemon, workspace, ..
        } = self;
        daemon.down()?;
        between(daemon.home())?;
        daemon.up()?;
        Self::around(daemon, workspace)
    }

    /// The same home after its daemon was killed.
    pub(super) fn after_kill(self) -> Result<Self> {
        let Self {
            daemon, workspace, ..
        } = self;
        daemon.up()?;
        Self::around(daemon, workspace)
    }

    /// A new connection for each request: the daemon closes idle ones, and the peer has its turn in between.
    pub(super) fn client(&self) -> Result<HttpClient> {
        HttpClient::unix(&self.socket, &self.token)
    }

    pub(super) fn door(&self) -> Door {
        Door::Unix(self.socket.clone())
    }

    pub(super) fn session(&self) -> Result<String> {
        let body = json!({"directory": self.workspace.path(), "title": "bench"});
        let session = self.client()?.post_json("/v1/sessions", &body)?;
        id(session.get("session").unwrap_or(&session))
    }

    pub(super) fn turn(&self, session: &str, script: &str) -> Result<String> {
        let body = json!({"prompt": "go", "agent": {"name": "rehearsal", "script": script}});
        let accepted = self
            .client()?
            .post_json(&format!("/v1/sessions/{session}/turns"), &body)?;
        id(&accepted["turn"])
    }

    pub(super) fn ended(&self, session: &str, turn: &str) -> Result<Value> {
        loop {
            let path = format!("/v1/sessions/{session}/turns/{turn}?wait_ms={WAIT_MS}");
            let turn = self.client()?.get_json(&path)?;
            if !matches!(turn["state"].as_str(), Some("queued" | "running")) {
                return Ok(turn);
            }
        }
    }

    pub(super) fn request(&self, session: &str, turn: &str, query: &str) -> String {
        format!(
            "GET /v1/sessions/{session}/turns/{turn}/events{query} HTTP/1.1\r\nhost: localhost\r\n\
             authorization: Bearer {}\r\naccept: text/event-stream\r\n\r\n",
            self.token
        )
    }
}

fn id(entity: &Value) -> Result<String> {
    let id = entity["id"].as_str().map(str::to_owned);
    id.context("an entity without an id")
}

/// A script that waits for its readers to connect, and then outputs the given number of words.
pub(super) fn words(wait_ms: u64, words: u64) -> String {
    assert!(words.is_multiple_of(10), "it says ten words at a time");
    format!(
        "steps:\n- sleep: {wait_ms}ms\n- repeat: {{times: {}, steps: [{{say: {{text: \"a b c d e f g h i j \"}}}}]}}\n",
        words / 10
    )
}
