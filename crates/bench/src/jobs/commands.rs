//! Commands as jobs of the shipped daemon.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::own_daemon::Daemon;

/// How long one request waits for a job to end; the daemon's maximum.
const WAIT_MS: u64 = 60_000;

/// A daemon of our own and a connection to it.
pub(crate) struct CommandJobs {
    client: HttpClient,
    daemon: Daemon,
}

impl CommandJobs {
    pub(crate) fn start(tidelock: &Path) -> Result<Self> {
        Self::at(Daemon::start(tidelock, |_| Ok(()))?)
    }

    pub(crate) fn start_on(tidelock: &Path, database: &str) -> Result<Self> {
        Self::at(Daemon::start(tidelock, |surroundings| {
            surroundings.database = Some(database.to_owned());
            Ok(())
        })?)
    }

    fn at(daemon: Daemon) -> Result<Self> {
        let (socket, token) = (daemon.socket()?, daemon.token()?);
        let client = HttpClient::unix(&socket, &token)?;
        Ok(Self { client, daemon })
    }

    /// Submits a shell command with additional fields, and returns the id of the job.
    pub(crate) fn submit(&mut self, shell: &str, directory: &Path, more: &Value) -> Result<String> {
        let mut body = json!({"command": {"shell": shell, "directory": directory}});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let job = self.client.post_json("/v1/jobs", &body)?;
        let job = job.get("job").unwrap_or(&job);
        let id = job["id"].as_str().map(str::to_owned);
        id.context("a job without an id")
    }

    pub(crate) fn cancel(&mut self, id: &str) -> Result<()> {
        self.client.post(&format!("/v1/jobs/{id}/cancel"), "{}")?;
        Ok(())
    }

    pub(crate) fn ended(&mut self, id: &str) -> Result<Value> {
        loop {
            let job = self
                .client
                .get_json(&format!("/v1/jobs/{id}?wait_ms={WAIT_MS}"))?;
            if !matches!(job["state"].as_str(), Some("queued" | "running")) {
                return Ok(job);
            }
        }
    }

    pub(crate) fn set_workers(&mut self, max_workers: usize) -> Result<()> {
        let body = json!({"max_workers": max_workers});
        self.client.put("/v1/jobs/workers", &body.to_string())?;
        Ok(())
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    pub(crate) fn daemon_pid(&self) -> Result<u32> {
        self.daemon.pid()
    }
}
