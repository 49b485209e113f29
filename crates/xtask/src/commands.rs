//! Commands beside `test` and `tidy`: generated pages, benchmarks, coverage of the kernel, and the audit of dependencies.

use std::process::Command;

use anyhow::{Result, bail};

use crate::child;
use crate::test::postgres;
use crate::workspace::{Workspace, cargo};

/// The tests that compare a page with the code write it instead when this is set.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

/// Writes the pages that are made from the code. `cargo xtask test` fails when they are stale.
pub(crate) fn docs(workspace: &Workspace) -> Result<()> {
    for arguments in [
        &["test", "-p", "daemon", "--lib", "committed_description"][..],
        &["test", "-p", "daemon", "--test", "it", "committed_reference"],
        &[
            "test",
            "-p",
            "tidelock",
            "--bin",
            "tidelock",
            "committed_reference",
        ],
    ] {
        child::run(
            cargo()
                .current_dir(&workspace.root)
                .args(arguments)
                .env(UPDATE, "1"),
        )?;
    }
    Ok(())
}

/// The share of the kernel's lines, in per cent, that its tests must reach.
const COVERAGE_BAR_PERCENT: u32 = 97;

pub(crate) fn coverage(workspace: &Workspace) -> Result<()> {
    if child::probe(&["cargo", "tarpaulin", "--version"]).is_none() {
        bail!("cargo-tarpaulin is missing; install it with `cargo install --locked cargo-tarpaulin`");
    }
    child::run(
        cargo()
            .current_dir(&workspace.root)
            .args(["tarpaulin", "-p", "kernel", "--engine", "llvm", "--out", "Stdout"])
            .args(["--include-files", "crates/kernel/src/*"])
            .args(["--fail-under", &COVERAGE_BAR_PERCENT.to_string()])
            // Instrumented artefacts live apart, so that the ordinary ones stay fresh.
            .arg("--target-dir")
            .arg(workspace.target_directory.join("coverage")),
    )
}

/// Looks for published advisories. It is not part of `test`, since the database has to be fetched and an
/// advisory of tonight must not fail a change of yesterday.
pub(crate) fn audit(workspace: &Workspace) -> Result<()> {
    child::run(
        cargo()
            .current_dir(&workspace.root)
            .args(["deny", "check", "advisories"]),
    )
}

const PROFILE: &str = "dist";

/// Builds the benchmark and the product as they are shipped, and measures; the benchmark itself writes and prints the report. Some tables alone are only printed.
pub(crate) fn bench(workspace: &Workspace, only: Option<&str>) -> Result<()> {
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
