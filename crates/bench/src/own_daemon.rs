//! A daemon of our own: the shipped binary with a separate home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

/// A daemon with its own home. Dropping it stops the daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    tidelock: PathBuf,
    home: PathBuf,
    /// Directories with language servers, which are searched before all others.
    programs: Vec<PathBuf>,
    /// The database that it shares with others, if any.
    database: Option<String>,
    /// The directory that holds the home; dropped last.
    _directory: TempDir,
}

#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// Its home; the directory already exists.
    pub(crate) home: &'a Path,
    pub(crate) programs: Vec<PathBuf>,
    /// The address of a database for its log, instead of a file in its home.
    pub(crate) database: Option<String>,
}

impl Daemon {
    /// Starts a daemon, after preparing its surroundings.
    pub(crate) fn start(
        tidelock: &Path,
        prepare: impl FnOnce(&mut Surroundings<'_>) -> Result<()>,
    ) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let home = directory.path().join("home");
        fs::create_dir(&home)?;
        let mut surroundings = Surroundings {
            home: &home,
            programs: Vec::new(),
            database: None,
        };
        prepare(&mut surroundings)?;
        let daemon = Self {
            tidelock: tidelock.to_owned(),
            programs: surroundings.programs,
            database: surroundings.database,
            home,
            _directory: directory,
        };
        daemon.up()?;
        Ok(daemon)
    }

    /// Starts it, unless it is running.
    pub(crate) fn up(&self) -> Result<()> {
        self.run("up")
    }

    pub(crate) fn down(&self) -> Result<()> {
        self.run("down")
    }

    fn run(&self, command: &str) -> Result<()> {
        let output = self.command(&[command]).stdin(Stdio::null()).output();
        let output = output.context("`tidelock` is not built")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            bail!("`tidelock {command}` failed: {said}");
        }
        Ok(())
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tidelock);
        command
            .args(arguments)
            .env("TIDELOCK_HOME", &self.home)
            .env("TIDELOCK_LISTEN", "127.0.0.1:0");
        if let Some(path) = search_path(&self.programs) {
            command.env("PATH", path);
        }
        if let Some(database) = &self.database {
            command.env("TIDELOCK_DATABASE_URL", database);
        }
        command
    }

    pub(crate) fn status(&self) -> Result<serde_json::Value> {
        let output = self.command(&["status", "--json"]).output()?;
        serde_json::from_slice(&output.stdout).context("`tidelock status --json` is not JSON")
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        let pid = self.status()?["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok());
        pid.context("`tidelock status --json` names no pid")
    }

    pub(crate) fn socket(&self) -> Result<PathBuf> {
        let status = self.status()?;
        let socket = status["socket"].as_str();
        Ok(PathBuf::from(socket.context("the status has no `socket`")?))
    }

    pub(crate) fn token(&self) -> Result<String> {
        let token = fs::read_to_string(self.home.join("state/token")).context("there is no token")?;
        Ok(token.trim().to_owned())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let stopped = self
            .command(&["down"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!(
                "warning: `tidelock down` failed; a daemon may be left with home {}",
                self.home.display()
            );
        }
    }
}

/// The usual `PATH` after these directories; `None` if there are none.
pub(crate) fn search_path(first: &[PathBuf]) -> Option<std::ffi::OsString> {
    if first.is_empty() {
        return None;
    }
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let all = first.iter().cloned().chain(std::env::split_paths(&usual));
    std::env::join_paths(all).ok()
}
