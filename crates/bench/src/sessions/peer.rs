//! The peer: FastAPI and sse-starlette with a ring in memory.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::sse::Door;
use crate::http::HttpClient;
use crate::programs::{finish, peers_directory};

/// Its sources, relative to the root of the repository, where the benchmark runs.
const SOURCES: &str = "crates/bench/peers/fastapi";
/// It has to answer within this time.
const START_WITHIN: Duration = Duration::from_secs(30);

/// A running server. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct Peer {
    server: Child,
    address: SocketAddr,
}

impl Peer {
    pub(super) fn start(tidelock: &Path) -> Result<Self> {
        let python = installed(tidelock)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let server = Command::new(python)
            .arg(Path::new(SOURCES).join("server.py"))
            .arg(address.port().to_string())
            .stdin(Stdio::null())
            .spawn()
            .context("the peer does not start")?;
        let peer = Self { server, address };
        let began = Instant::now();
        while peer
            .client()
            .and_then(|mut client| client.get_json("/healthz"))
            .is_err()
        {
            ensure!(began.elapsed() < START_WITHIN, "the peer does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(peer)
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.id()
    }

    pub(super) fn door(&self) -> Door {
        Door::Tcp(self.address)
    }

    /// Creates a turn that begins when enough readers are there, and returns their request.
    pub(super) fn turn(&self, events: u64, readers: usize) -> Result<String> {
        let wanted = json!({"events": events, "readers": readers});
        let turn = self.client()?.post_json("/turns", &wanted)?;
        let id = turn["id"].as_u64().context("a turn without an id")?;
        Ok(format!(
            "GET /turns/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
        ))
    }

    fn client(&self) -> Result<HttpClient> {
        HttpClient::tcp(&self.address.to_string(), "")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

fn installed(tidelock: &Path) -> Result<PathBuf> {
    let directory = peers_directory(tidelock)?.join("python");
    let python = directory.join("bin/python");
    if !directory.join("bin/uvicorn").is_file() {
        eprintln!("installing the peer FastAPI ...");
        finish(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
        let mut install = Command::new(&python);
        install
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(Path::new(SOURCES).join("requirements.txt"));
        finish(&mut install)?;
    }
    Ok(python)
}
