//! What the tests of jobs have in common: bytes instead of text, clients that run beside the test, and a look at what a
//! job has left behind.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::harness::{COMMAND_LIMIT, Running, World, processes_of, wait_for};

/// What is left behind when all is well.
pub(crate) const NOBODY: [u32; 0] = [];

/// How a command ended, byte for byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// `tidelock job` with these arguments.
pub(crate) fn job_command(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(&["job"]);
    command.args(arguments);
    command
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn finish_bytes(world: &World, command: Command) -> Bytes {
    let mut beside = Beside::start(world, command);
    let status = beside.wait();
    Bytes {
        code: status.code(),
        stdout: beside.stdout(),
        stderr: beside.stderr(),
    }
}

/// Submits a job, and returns its id.
#[track_caller]
pub(crate) fn submit(world: &World, options: &[&str], command: &[&str]) -> String {
    let mut arguments = vec!["job", "run", "--json"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    let submitted = world.run(&arguments).expect(0).json();
    submitted["id"].as_str().unwrap().to_owned()
}

/// A job as `job show --json` tells it.
#[track_caller]
pub(crate) fn shown(world: &World, id: &str) -> Value {
    world.run(&["job", "show", id, "--json"]).expect(0).json()
}

/// The job when it has ended, whatever became of it.
#[track_caller]
pub(crate) fn ended(world: &World, id: &str) -> Value {
    let waited = world
        .run(&["job", "wait", id, "--timeout", "50s", "--json"])
        .json();
    assert!(waited["ended_at"].is_string(), "it has not ended: {waited}");
    shown(world, id)
}

#[track_caller]
pub(crate) fn wait_for_state(world: &World, id: &str, state: &str) {
    wait_for(&format!("{id} to be {state}"), || {
        shown(world, id)["state"] == state
    });
}

/// What has happened to a job, in one word each.
pub(crate) fn events(job: &Value) -> Vec<&str> {
    let moments = job["history"].as_array().unwrap();
    moments
        .iter()
        .map(|moment| moment["event"].as_str().unwrap())
        .collect()
}

/// Every process of this world but its daemon. A job inherits the name of the home, and so do all that it starts.
pub(crate) fn left_behind(world: &World) -> Vec<u32> {
    let daemon = world.owner().map(|owner| owner.pid);
    let mut found = processes_of(world);
    found.retain(|pid| Some(*pid) != daemon);
    found
}

/// A client that runs beside the test. What it writes goes to files, so that it never waits for a reader. Dropping it
/// kills it.
#[derive(Debug)]
pub(crate) struct Beside {
    running: Running,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Beside {
    pub(crate) fn start(world: &World, mut command: Command) -> Beside {
        let directory = tempfile::tempdir_in(world.path()).unwrap().keep();
        let (stdout, stderr) = (directory.join("stdout"), directory.join("stderr"));
        let command = command
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        Beside {
            running: Running(command.spawn().unwrap()),
            stdout,
            stderr,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.0.id()
    }

    pub(crate) fn stdout(&self) -> Vec<u8> {
        fs::read(&self.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> Vec<u8> {
        fs::read(&self.stderr).unwrap()
    }

    /// Both as text, for what people read.
    pub(crate) fn said(&self) -> (String, String) {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(self.stdout()), text(self.stderr()))
    }

    /// Waits until it has written something to standard error.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) {
        wait_for(text, || self.said().1.contains(text));
    }

    #[track_caller]
    pub(crate) fn wait_for_stdout(&self, text: &str) {
        wait_for(text, || String::from_utf8_lossy(&self.stdout()).contains(text));
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> Option<ExitStatus> {
        self.running.0.try_wait().unwrap()
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("a client to end", || {
            status = self.try_wait();
            status.is_some()
        });
        status.unwrap()
    }

    /// How it ended, as a shell says it.
    #[track_caller]
    pub(crate) fn wait_code(&mut self) -> i32 {
        let status = self.wait();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

/// Runs a command on a terminal of its own, and returns how it ended and all that came to the terminal.
#[track_caller]
pub(crate) fn on_a_terminal(command: Command) -> (i32, String) {
    on_a_terminal_but(command, None)
}

/// The same, with standard error sent to a file.
#[track_caller]
pub(crate) fn on_a_terminal_but(mut command: Command, stderr: Option<File>) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: 120,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).unwrap();
    let handle = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
    command
        .stdin(handle(&slave))
        .stdout(handle(&slave))
        .stderr(stderr.map_or_else(|| handle(&slave), Stdio::from));
    let mut running = Running(command.spawn().unwrap());
    // The command holds handles of its own; with the last one the terminal ends.
    drop((command, slave));
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let (mut text, mut terminal) = (Vec::new(), File::from(master));
        // A terminal that nobody has open any more ends with an error.
        drop(terminal.read_to_end(&mut text));
        drop(sender.send(text));
    });
    let text = receiver
        .recv_timeout(COMMAND_LIMIT)
        .expect("the terminal to be left");
    let status = running.0.wait().unwrap();
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap());
    // What is no text is for the test to find.
    (code, String::from_utf8_lossy(&text).into_owned())
}
