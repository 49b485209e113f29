//! The peers: programs that get a directory or database and a load, and print nanoseconds, one number per line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::programs::{find_peer, finish, peers_directory};

/// The peers' sources, relative to the root of the repository, where the benchmark runs.
const SOURCES: &str = "crates/bench/peers";
const GRAPHILE_WORKER: &str = "graphile-worker@0.16.6";

/// apalis, built if needed.
#[derive(Debug)]
pub(super) struct Apalis {
    program: PathBuf,
}

/// graphile-worker, installed if needed.
#[derive(Debug)]
pub(super) struct GraphileWorker {
    /// The script that runs it. Node finds the package next to it.
    script: PathBuf,
}

impl Apalis {
    pub(super) fn get(tidelock: &Path) -> Result<Self> {
        if let Some(program) = find_peer("apalis-peer") {
            return Ok(Self { program });
        }
        let target = peers_directory(tidelock)?;
        eprintln!("building the peer apalis ...");
        let mut build = Command::new("cargo");
        build
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(Path::new(SOURCES).join("apalis/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target);
        finish(&mut build)?;
        Ok(Self {
            program: target.join("release/apalis-peer"),
        })
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Result<Vec<f64>> {
        ask(Command::new(&self.program).args(arguments))
    }
}

impl GraphileWorker {
    pub(super) fn get(tidelock: &Path) -> Result<Self> {
        let directory = peers_directory(tidelock)?.join("node");
        fs::create_dir_all(&directory)?;
        let script = directory.join("drain.mjs");
        fs::copy(Path::new(SOURCES).join("graphile/drain.mjs"), &script)
            .context("the peer's script is not here")?;
        if !directory.join("node_modules/graphile-worker").is_dir() {
            eprintln!("installing the peer graphile-worker ...");
            let mut install = Command::new("npm");
            install
                .args(["install", "--no-fund", "--no-audit", "--no-save", "--prefix"])
                .arg(&directory)
                .arg(GRAPHILE_WORKER);
            finish(&mut install)?;
        }
        Ok(Self { script })
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Result<Vec<f64>> {
        ask(Command::new("node").arg(&self.script).args(arguments))
    }
}

pub(super) fn ask(command: &mut Command) -> Result<Vec<f64>> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        said.trim()
    );
    numbers(&String::from_utf8_lossy(&output.stdout))
}

fn numbers(text: &str) -> Result<Vec<f64>> {
    let number = |line: &str| {
        let number = line.trim().parse();
        number.with_context(|| format!("a peer said `{line}` instead of a number"))
    };
    text.lines().map(number).collect()
}

/// The two figures of a load: the time per job to submit and to drain. These are compared.
pub(super) fn drain_figures(numbers: &[f64]) -> Result<[f64; 2]> {
    let [submit, drain] = *numbers else {
        anyhow::bail!("a peer gave {} numbers and not two", numbers.len());
    };
    Ok(super::load::PerJob { submit, drain }.figures())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_peer_are_read_or_refused() {
        assert_eq!(numbers("1\n2.5\n").unwrap(), [1.0, 2.5]);
        assert_eq!(drain_figures(&[1.0, 2.5]).unwrap(), [2.5, 3.5]);
        assert!(numbers("1\nwhat\n").is_err());
        assert!(drain_figures(&[1.0]).is_err());
    }

    #[test]
    fn a_peer_that_fails_is_heard() {
        let error = ask(Command::new("sh").args(["-c", "echo no disk >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("no disk"), "{error}");
    }
}
