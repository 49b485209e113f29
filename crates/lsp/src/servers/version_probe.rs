//! Asking a program for its version, within bounds.
//!
//! This is only for rustup's proxies, which can't be told from the real program in any other way. It blocks; callers
//! run detection on a thread for blocking work.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::environment::Environment;

/// The most that is read. It fits into any pipe, so that the child can't block on us.
const OUTPUT_BYTES: u64 = 4096;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    Version(String),
    /// It couldn't be run, failed, or took too long and was killed.
    Failed,
}

/// Runs `PROGRAM --version` in a directory.
pub(super) fn run(program: &Path, directory: &Path, environment: &Environment, within: Duration) -> Probed {
    let names = [
        "PATH",
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "LANG",
    ];
    let spawned = Command::new(program)
        .arg("--version")
        .current_dir(directory)
        .env_clear()
        .envs(environment.select(names.into_iter()))
        // A question must not download a toolchain.
        .env("RUSTUP_AUTO_INSTALL", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else {
        return Probed::Failed;
    };
    let ended = ends_within(&child, within);
    if !ended {
        // If the child has exited, this does nothing; either way it is reaped below.
        child.kill().ok();
    }
    let succeeded = child.wait().is_ok_and(|status| status.success());
    if !ended || !succeeded {
        return Probed::Failed;
    }
    first_line(&mut child)
}

/// Waits on the process itself, so there is no polling.
fn ends_within(child: &Child, within: Duration) -> bool {
    let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else {
        return false;
    };
    let Ok(timeout) = Timespec::try_from(within) else {
        return false;
    };
    let mut waiting = [PollFd::new(&process, PollFlags::IN)];
    // An interruption counts as too late: the result is "not installed", and the next question tries again.
    matches!(poll(&mut waiting, Some(&timeout)), Ok(ready) if ready > 0)
}

/// The process has exited, so its output is in the pipe. A child of its own could hold the pipe open, so this doesn't
/// wait for the end of file.
fn first_line(child: &mut Child) -> Probed {
    let Some(stdout) = child.stdout.take() else {
        return Probed::Failed;
    };
    let mut waiting = [PollFd::new(&stdout, PollFlags::IN)];
    let nothing_to_wait_for = Timespec::try_from(Duration::ZERO).ok();
    if !matches!(poll(&mut waiting, nothing_to_wait_for.as_ref()), Ok(ready) if ready > 0) {
        return Probed::Failed;
    }
    let mut said = vec![0; OUTPUT_BYTES as usize];
    let Ok(length) = stdout.take(OUTPUT_BYTES).read(&mut said) else {
        return Probed::Failed;
    };
    let said = String::from_utf8_lossy(&said[..length]);
    match said.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Probed::Version(line.to_owned()),
        _ => Probed::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let process = directory.path().join("process");
        let script = format!("#!/bin/sh\necho $$ > '{}'\nexec sleep 600\n", process.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let environment = Environment::new([("PATH".into(), "/usr/bin:/bin".into())]);
        let probed = run(&program, directory.path(), &environment, Duration::from_secs(1));
        assert_eq!(probed, Probed::Failed);
        // If the machine is too busy to start it within a second, there is nothing to kill.
        if let Ok(process) = std::fs::read_to_string(process) {
            assert!(
                !Path::new("/proc").join(process.trim()).exists(),
                "{process} is left"
            );
        }
    }
}
