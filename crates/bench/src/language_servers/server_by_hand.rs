//! A server that is started by hand and used over its pipes, as an editor does.

use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::speaker::{Speaker, initialize_params};
use crate::own_daemon::search_path;
use crate::programs::server_directories;

/// A server that lives longer hangs, and so does its reader. Killing it ends both.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

/// A program that is killed when it is dropped, or when it has lived too long.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    _watched: mpsc::Sender<()>,
}

impl Started {
    pub(super) fn new(command: &mut Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("{command:?} did not start"))?;
        // The child is ours and has not been waited for, so its pid is still its own.
        let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let (watched, watch) = mpsc::channel::<()>();
        thread::spawn(move || {
            if watch.recv_timeout(LONGEST_LIFE) == Err(RecvTimeoutError::Timeout) {
                // If it has ended in the meantime, it needs no signal.
                let _ended = pidfd_send_signal(&descriptor, Signal::KILL);
            }
        });
        Ok(Self {
            child,
            _watched: watched,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A language server that has answered `initialize`.
pub(super) struct ServerByHand {
    pub(super) speaker: Speaker<ChildStdout, ChildStdin>,
    started: Started,
}

impl ServerByHand {
    pub(super) fn start(tidelock: &Path, program: &Path, arguments: &[&str], root: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(path) = search_path(&server_directories(tidelock)) {
            command.env("PATH", path);
        }
        let mut started = Started::new(&mut command)?;
        let pipes = started.child.stdout.take().zip(started.child.stdin.take());
        let (stdout, stdin) = pipes.context("a child without pipes")?;
        let mut speaker = Speaker::new(stdout, stdin);
        speaker.initialize(&initialize_params(root)?)?;
        Ok(Self { speaker, started })
    }

    pub(super) fn pid(&self) -> u32 {
        self.started.pid()
    }
}
