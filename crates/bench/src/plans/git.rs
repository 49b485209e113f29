//! The git program, as far as possible without the user's settings.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::statistics::nanoseconds;

/// No settings of the user or the machine, a name for commits, and no background work.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_AUTHOR_NAME", "bench"),
    ("GIT_AUTHOR_EMAIL", "bench@localhost"),
    ("GIT_COMMITTER_NAME", "bench"),
    ("GIT_COMMITTER_EMAIL", "bench@localhost"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "gc.auto"),
    ("GIT_CONFIG_VALUE_0", "0"),
    ("GIT_CONFIG_KEY_1", "maintenance.auto"),
    ("GIT_CONFIG_VALUE_1", "false"),
];

/// A git command in a directory. Its output is discarded unless the caller captures it.
pub(super) fn command(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .envs(ENVIRONMENT.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs a command that must succeed, and returns its output.
pub(super) fn run(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<String> {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().context("cannot run git")?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command that must succeed, and returns how many nanoseconds it took, including the start of the program.
pub(super) fn time(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<f64> {
    let mut command = command(directory, arguments);
    let began = Instant::now();
    let status = command.status().context("cannot run git")?;
    let took = nanoseconds(began.elapsed());
    ensure!(status.success(), "{command:?} failed");
    Ok(took)
}
