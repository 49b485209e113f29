//! `cargo xtask bench`: builds the benchmark and the product as they are shipped, and runs the one on the other.

use std::process::Command;

use anyhow::Result;

use crate::child;
use crate::test::postgres;
use crate::workspace::{Workspace, cargo};

const PROFILE: &str = "dist";

/// Builds and measures; the benchmark itself writes and prints the report. Some tables alone are only printed.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>) -> Result<()> {
    child::run(cargo().current_dir(&workspace.root).args([
        "build",
        "--profile",
        PROFILE,
        "-p",
        "bench",
        "-p",
        "tidelock",
        // The server that echoes, for whatever is measured through the daemon.
        "-p",
        "lsp",
        "--bins",
    ]))?;
    let built = workspace.target_directory.join(PROFILE);
    let mut bench = Command::new(built.join("bench"));
    bench
        .current_dir(&workspace.root)
        .arg("--tidelock")
        .arg(built.join("tidelock"))
        .args(match only {
            Some(tables) => ["--only", tables],
            None => ["--report", "BENCHMARKS.md"],
        });
    let server = postgres::for_bench();
    if let Some(server) = &server {
        server.tell_bench(&mut bench);
    }
    child::run(&mut bench)
}
