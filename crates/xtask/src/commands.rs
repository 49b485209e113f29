//! Commands other than `test` and `tidy`: generated pages, benchmarks, coverage of the kernel, and the dependency
//! audit.

use std::process::Command;

use anyhow::{Result, bail};

use crate::child;
use crate::test::postgres;
use crate::workspace::{Workspace, cargo};

/// If this is set, the tests that compare a page with the code write it instead.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

/// Writes the pages that are generated from the code. `cargo xtask test` fails if they are stale.
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

/// The percentage of the kernel's lines that its tests must reach.
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
            // Instrumented artifacts are kept apart, so that the ordinary ones stay fresh.
            .arg("--target-dir")
            .arg(workspace.target_directory.join("coverage")),
    )
}

/// Looks for published advisories. It is not part of `test`, since the database has to be fetched, and a new advisory
/// must not fail an older change.
pub(crate) fn audit(workspace: &Workspace) -> Result<()> {
    child::run(
        cargo()
            .current_dir(&workspace.root)
            .args(["deny", "check", "advisories"]),
    )
}

const PROFILE: &str = "dist";

/// Builds the benchmark and the product as shipped, and measures; the benchmark itself writes and prints the report.
/// A selection of tables is only printed.
pub(crate) fn bench(workspace: &Workspace, only: Option<&str>) -> Result<()> {
    child::run(cargo().current_dir(&workspace.root).args([
        "build",
        "--profile",
        PROFILE,
        "-p",
        "bench",
        "-p",
        "tidelock",
        // The echo server, for everything that is measured through the daemon.
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
