//! A daemon that shares language servers, and what is needed to talk to it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::own_daemon::Daemon;
use crate::programs::{fault_server, server_directories};

/// A file with the extension that the echo server handles.
const ECHO_FILE: &str = "any.echo";

#[derive(Debug)]
pub(super) struct SharedDaemon {
    pub(super) daemon: Daemon,
    socket: String,
    address: String,
    token: String,
}

impl SharedDaemon {
    /// Starts a daemon that knows the real servers, uses pyright for Python, and has an echo server.
    pub(super) fn start(tidelock: &Path) -> Result<Self> {
        let echo = fault_server(tidelock)?;
        let daemon = Daemon::start(tidelock, |surroundings| {
            surroundings.programs = server_directories(tidelock);
            let configuration = json!({
                "servers": {"echo": {"command": [echo], "languages": {"echo": [".echo"]}}},
                "prefer": {"python": ["pyright"]},
            });
            let path = surroundings.home.join("lsp.json");
            Ok(fs::write(path, configuration.to_string())?)
        })?;
        let status = daemon.status()?;
        let text = |name: &str| {
            let text = status[name].as_str().map(str::to_owned);
            text.with_context(|| format!("the status has no `{name}`"))
        };
        Ok(Self {
            socket: text("socket")?,
            address: text("address")?,
            token: daemon.token()?,
            daemon,
        })
    }

    pub(super) fn unix(&self) -> Result<HttpClient> {
        HttpClient::unix(Path::new(&self.socket), &self.token)
    }

    pub(super) fn tcp(&self) -> Result<HttpClient> {
        HttpClient::tcp(&self.address, &self.token)
    }

    /// Starts the echo server, and returns the path to ask it.
    pub(super) fn start_echo(&self, root: &Path) -> Result<String> {
        let file = root.join(ECHO_FILE);
        fs::write(&file, "")?;
        let started = self
            .unix()?
            .post_json("/v1/lsp/servers", &json!({ "path": file }))?;
        let id = started["servers"][0]["id"].as_str();
        let id = id.context("the server that echoes has no id")?;
        Ok(format!("/v1/lsp/servers/{id}/request"))
    }

    pub(super) fn only_server(&self) -> Result<Value> {
        let list = self.unix()?.get_json("/v1/lsp/servers")?;
        let servers = list["servers"].as_array().context("no list of servers")?;
        match servers.as_slice() {
            [server] => Ok(server.clone()),
            several => anyhow::bail!("there are {} servers and not one", several.len()),
        }
    }

    pub(super) fn server_pid(&self) -> Result<u32> {
        let pid = self.only_server()?["pid"].as_u64();
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        pid.context("the server has no pid")
    }
}
