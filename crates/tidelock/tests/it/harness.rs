//! A home of its own for every test, the real program in it, and a guard that leaves no daemon behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use daemon::{Home, Liveness, Owner, read_owner};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// No command of ours takes this long; whatever does, hangs.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The one JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "not one line: {self:?}");
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(value.is_object(), "not an object: {self:?}");
        value
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Outcome {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

/// Whether a breaker is that of a strategy. Those are always listed.
pub(crate) fn is_own(breaker: &Value) -> bool {
    breaker["id"]
        .as_str()
        .is_some_and(|id| id.starts_with("context/"))
}

/// A temporary home. Dropping it kills the daemon that runs there, if any.
#[derive(Debug)]
pub(crate) struct World {
    directory: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The same below a directory, for tests that mind where they are.
    pub(crate) fn below(directory: &Path) -> World {
        World {
            directory: tempfile::tempdir_in(directory).unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn home(&self) -> Home {
        let home = self.path().join("home");
        Home {
            runtime: home.join("run"),
            state: home.join("state"),
        }
    }

    /// The program with these arguments, in this world and undisturbed by the environment of the tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null());
        for variable in [
            "NO_COLOR",
            "CLICOLOR_FORCE",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "TIDELOCK_MODEL",
            "TIDELOCK_MODEL_BASE_URL",
            "TIDELOCK_DATABASE_URL",
            "TIDELOCK_LOG",
            "TIDELOCK_TOKEN_FILE",
        ] {
            command.env_remove(variable);
        }
        for (variable, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG"))
        {
            command.env_remove(variable);
        }
        command
            .env("TIDELOCK_ACTOR", "the test")
            .env("TIDELOCK_HOME", self.path().join("home"))
            .env("TIDELOCK_LISTEN", "127.0.0.1:0");
        command.env("COLUMNS", "100");
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        finish(self.command(arguments))
    }

    /// The process that holds the lock of this home.
    pub(crate) fn owner(&self) -> Option<Owner> {
        read_owner(&self.home()).filter(|owner| owner.liveness() == Liveness::Alive)
    }

    /// Kills the daemon as the system would when memory runs out.
    #[track_caller]
    pub(crate) fn kill(&self) {
        let owner = self.owner().expect("a daemon is alive");
        signal(owner.pid, Signal::KILL);
        wait_for("the daemon to be gone", || owner.liveness() == Liveness::Gone);
    }

    #[track_caller]
    pub(crate) fn pid(&self) -> u32 {
        self.owner().expect("a daemon is alive").pid
    }

    /// Snapshots in which everything that differs from run to run has a name instead.
    pub(crate) fn snapshots(&self) -> insta::Settings {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(&self.path().display().to_string(), "[DIR]");
        for (pattern, name) in [
            (r"boot_[0-9A-Z]{26}", "[BOOT]"),
            (r"home_[0-9A-Z]{26}", "[HOME]"),
            (r"req_[0-9A-Z]{26}", "[REQUEST]"),
            (r"127\.0\.0\.1:\d+", "[ADDRESS]"),
            (r"tidelock-[0-9a-f]{32}\.localhost:\d+", "[PAGE]"),
            (r"code=[0-9A-Za-z_-]+", "code=[CODE]"),
            (r#""(pid|uptime_ms|rss_bytes)": \d+"#, r#""$1": [NUMBER]"#),
            (r#""started_at": "[^"]+""#, r#""started_at": "[TIME]""#),
            (r"(pid\s+)\d+", "$1[PID]"),
            (r"(uptime\s+)\d+ m?s", "$1[DURATION]"),
            (r"probe in \d+ s", "probe in [N] s"),
            (r"(memory\s+)[0-9.]+ MiB", "$1[SIZE]"),
            (&env!("CARGO_PKG_VERSION").replace('.', r"\."), "[VERSION]"),
        ] {
            settings.add_filter(pattern, name);
        }
        settings
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Only our own program is ever killed, whatever a test has written into the record.
        let is_ours =
            |owner: &Owner| fs::read_link(format!("/proc/{}/exe", owner.pid)).ok() == Some(program());
        if let Some(owner) = self.owner().filter(is_ours) {
            signal(owner.pid, Signal::KILL);
            wait_for("the daemon to be gone", || owner.liveness() == Liveness::Gone);
        }
    }
}

pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tidelock"))
}

/// Runs a command to its end, and to the end of everything that holds its output open.
#[track_caller]
pub(crate) fn finish(command: Command) -> Outcome {
    finish_within(command, COMMAND_LIMIT)
}

/// The same for programs of others, which may take longer.
#[track_caller]
pub(crate) fn finish_within(mut command: Command, limit: Duration) -> Outcome {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(child.wait_with_output())));
    let Ok(output) = receiver.recv_timeout(limit) else {
        signal(pid, Signal::KILL);
        panic!("still running after {limit:?}: {command:?}");
    };
    let output = output.unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A process of a test. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // A process that has ended in the meantime needs no signal.
    let _ = kill_process(pid, signal);
}

/// Stops a process. Until it runs next and takes the signal it goes on, so each of its threads is waited for.
#[track_caller]
pub(crate) fn halt(pid: u32) {
    signal(pid, Signal::STOP);
    wait_for("each thread to stop", || is_halted(pid));
}

fn is_halted(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let mut states = threads.map(|thread| fs::read_to_string(thread.path().join("status")));
    states.all(|state| state.is_ok_and(|state| state.contains("State:\tT")))
}

/// Waits until something is true, and fails when it does not become true.
#[track_caller]
pub(crate) fn wait_for(what: &str, condition: impl FnMut() -> bool) {
    wait_for_within(what, Duration::from_secs(30), condition);
}

/// The same with a bound of its own, for what takes its time.
#[track_caller]
pub(crate) fn wait_for_within(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < give_up_at, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Every process whose environment names this home: the daemon, and whatever it might have left behind.
pub(crate) fn processes_of(world: &World) -> Vec<u32> {
    let marker = format!("TIDELOCK_HOME={}", world.path().join("home").display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker.as_bytes())
        {
            found.push(pid);
        }
    }
    found
}
