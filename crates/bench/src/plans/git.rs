//! The git program, as far as possible without the settings of whoever runs this.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::statistics::nanoseconds;

/// Nothing of the user's or the machine's, a name for commits, and no work in the background.
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

/// A command of git in a directory. Its output goes nowhere unless somebody takes it.
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

/// Runs a command that must succeed, and gives back what it said.
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

/// Runs a command that must succeed, and gives back how many nanoseconds it took, the start of the program included.
pub(super) fn time(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<f64> {
    let mut command = command(directory, arguments);
    let began = Instant::now();
    let status = command.status().context("cannot run git")?;
    let took = nanoseconds(began.elapsed());
    ensure!(status.success(), "{command:?} failed");
    Ok(took)
}
