//! `aether-lspd`, which shares a server and opens documents for its clients: a length and then JSON, both ways.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server_by_hand::Started;
use crate::own_daemon::search_path;
use crate::programs::{find_peer, server_directories};

/// How long it may take to start listening, and how often to check.
const START_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// An answer that takes longer counts as a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// No answer in a benchmark is longer.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Aether {
    stream: UnixStream,
    next_id: i64,
    _started: Started,
    _directory: TempDir,
}

impl Aether {
    /// Starts it for a Python project; `None` if it is not installed.
    pub(super) fn start(tidelock: &Path, root: &Path) -> Result<Option<Self>> {
        let Some(program) = find_peer("aether-lspd") else {
            return Ok(None);
        };
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("socket");
        let mut command = Command::new(program);
        command
            .arg("--socket")
            .arg(&socket)
            .args(["--log-level", "error", "--log-file"])
            .arg(directory.path().join("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(path) = search_path(&server_directories(tidelock)) {
            command.env("PATH", path);
        }
        let started = Started::new(&mut command)?;
        let stream = connect(&socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut this = Self {
            stream,
            next_id: 1,
            _started: started,
            _directory: directory,
        };
        let answer = this.exchange(&json!({"Initialize": {"workspace_root": root, "language": "Python"}}))?;
        ensure!(answer == "Initialized", "aether-lspd refuses: {answer}");
        Ok(Some(this))
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let call = json!({"Call": {"id": id, "call": {"Lsp": {"method": method, "params": params}}}});
        let mut answer = self.exchange(&call)?;
        let reply = &mut answer["Reply"];
        ensure!(reply["id"] == id, "aether-lspd answered something else");
        match reply["result"].get_mut("Ok") {
            Some(result) => Ok(result.take()),
            None => bail!("aether-lspd failed: {}", reply["result"]),
        }
    }

    fn exchange(&mut self, message: &Value) -> Result<Value> {
        let body = message.to_string();
        let length = u32::try_from(body.len()).context("a message that is too long")?;
        let framed = [&length.to_be_bytes(), body.as_bytes()].concat();
        self.stream.write_all(&framed)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        ensure!(length <= LONGEST_ANSWER, "an answer of {length} bytes");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

fn connect(socket: &PathBuf) -> Result<UnixStream> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if began.elapsed() > START_WITHIN => bail!("aether-lspd does not listen: {error}"),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
