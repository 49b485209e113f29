//! Commands as jobs of the shipped daemon.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::own_daemon::Daemon;

/// How long one request waits for the end of a job; the most that the daemon allows.
const WAIT_MS: u64 = 60_000;

/// A daemon of our own and a connection to it.
pub(super) struct CommandJobs {
    client: HttpClient,
    daemon: Daemon,
}

impl CommandJobs {
    pub(super) fn start(tidelock: &Path) -> Result<Self> {
        let daemon = Daemon::start(tidelock, |_| Ok(()))?;
        let status = daemon.status()?;
        let socket = status["socket"].as_str().context("the status has no `socket`")?;
        let client = HttpClient::unix(Path::new(socket), &daemon.token()?)?;
        Ok(Self { client, daemon })
    }

    /// Submits a line for the shell, with what else is wanted, and gives back the id of the job.
    pub(super) fn submit(&mut self, shell: &str, directory: &Path, more: &Value) -> Result<String> {
        let mut body = json!({"command": {"shell": shell, "directory": directory}});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let job = self.client.post_json("/v1/jobs", &body)?;
        let job = job.get("job").unwrap_or(&job);
        let id = job["id"].as_str().map(str::to_owned);
        id.context("a job without an id")
    }

    pub(super) fn cancel(&mut self, id: &str) -> Result<()> {
        self.client.post(&format!("/v1/jobs/{id}/cancel"), "{}")?;
        Ok(())
    }

    /// The job when it has ended.
    pub(super) fn ended(&mut self, id: &str) -> Result<Value> {
        loop {
            let job = self
                .client
                .get_json(&format!("/v1/jobs/{id}?wait_ms={WAIT_MS}"))?;
            if !matches!(job["state"].as_str(), Some("queued" | "running")) {
                return Ok(job);
            }
        }
    }

    pub(super) fn daemon_pid(&self) -> Result<u32> {
        self.daemon.pid()
    }
}
