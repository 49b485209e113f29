//! Finds programs of others.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Directories with real language servers, joined as in `PATH`; the tests read the same variable.
const SERVERS_VARIABLE: &str = "TIDELOCK_TEST_SERVERS";
/// Directories with programs to compare with.
const PEERS_VARIABLE: &str = "TIDELOCK_BENCH_PEERS";

pub(crate) fn fault_server(tidelock: &Path) -> Result<PathBuf> {
    let path = tidelock.with_file_name("fault-server");
    let path = path.canonicalize();
    path.with_context(|| format!("there is no `fault-server` beside {}", tidelock.display()))
}

/// Directories with real language servers: those in the variable, or those that `cargo xtask test` has filled.
pub(crate) fn server_directories(tidelock: &Path) -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(SERVERS_VARIABLE) {
        return std::env::split_paths(&named).collect();
    }
    let Some(target) = tidelock.parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let servers = target.join("servers");
    [servers.join("python/bin"), servers.join("node/node_modules/.bin")].into()
}

pub(crate) fn find_server(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let everywhere = std::env::var_os("PATH").unwrap_or_default();
    find(
        name,
        directories
            .iter()
            .cloned()
            .chain(std::env::split_paths(&everywhere)),
    )
}

pub(crate) fn find_peer(name: &str) -> Option<PathBuf> {
    let [named, everywhere] =
        [PEERS_VARIABLE, "PATH"].map(|variable| std::env::var_os(variable).unwrap_or_default());
    find(
        name,
        std::env::split_paths(&named).chain(std::env::split_paths(&everywhere)),
    )
}

pub(crate) fn peers_directory(tidelock: &Path) -> Result<PathBuf> {
    let target = tidelock.parent().and_then(Path::parent);
    let target = target.context("the product is in no target directory")?;
    Ok(std::path::absolute(target)?.join("peers"))
}

/// Runs a tool that has to succeed. Its output goes where our own messages go.
pub(crate) fn finish(command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(ended.success(), "{command:?} ended with {ended}");
    Ok(())
}

fn find(name: &str, directories: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    directories
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
