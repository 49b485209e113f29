//! `lspmux`, which shares a server between clients that speak the protocol themselves.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;
use tempfile::TempDir;

use super::server_by_hand::Started;
use super::speaker::{Speaker, initialize_params};
use crate::programs::find_peer;

/// How long it may take to start listening, and how often to check.
const START_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// An answer that takes longer counts as a failure.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) type Client = Speaker<Box<dyn Read>, Box<dyn Write>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    UnixSocket,
    Tcp,
}

#[derive(Debug)]
pub(super) struct Lspmux {
    address: Address,
    _started: Started,
    _directory: TempDir,
}

#[derive(Debug)]
enum Address {
    Unix(PathBuf),
    Tcp(u16),
}

impl Lspmux {
    /// Starts it; `None` if it is not installed.
    pub(super) fn start(over: Over) -> Result<Option<Self>> {
        let Some(program) = find_peer("lspmux") else {
            return Ok(None);
        };
        let directory = tempfile::tempdir()?;
        let address = match over {
            Over::UnixSocket => Address::Unix(directory.path().join("socket")),
            // It's unlikely that another process takes the port in between.
            Over::Tcp => Address::Tcp(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()),
        };
        let listen = match &address {
            Address::Unix(path) => json!(path),
            Address::Tcp(port) => json!(["127.0.0.1", port]),
        };
        fs::create_dir(directory.path().join("lspmux"))?;
        // JSON strings are valid TOML strings here.
        let configuration = format!("listen = {listen}\nconnect = {listen}\nlog_filters = \"error\"\n");
        fs::write(directory.path().join("lspmux/config.toml"), configuration)?;
        let mut command = Command::new(program);
        command
            .arg("server")
            .env("XDG_CONFIG_HOME", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Started::new(&mut command)?;
        Ok(Some(Self {
            address,
            _started: started,
            _directory: directory,
        }))
    }

    pub(super) fn connect(&self, server: &Path, root: &Path) -> Result<Client> {
        let began = Instant::now();
        let (reader, writer) = loop {
            match self.open() {
                Ok(halves) => break halves,
                Err(error) if began.elapsed() > START_WITHIN => bail!("lspmux does not listen: {error}"),
                Err(_) => thread::sleep(PAUSE),
            }
        };
        let mut client = Speaker::new(reader, writer);
        let mut params = initialize_params(root)?;
        params["initializationOptions"] =
            json!({"lspMux": {"version": "1", "method": "connect", "server": server, "args": []}});
        client.initialize(&params)?;
        Ok(client)
    }

    fn open(&self) -> std::io::Result<(Box<dyn Read>, Box<dyn Write>)> {
        Ok(match &self.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
            Address::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
        })
    }
}
