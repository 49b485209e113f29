//! Commands that stand beside `test`: coverage of the kernel, and the audit of dependencies.

use anyhow::{Result, bail};

use crate::child;
use crate::workspace::{Workspace, cargo};

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
