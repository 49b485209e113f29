//! `cargo xtask docs`: writes the pages that are made from the code. `cargo xtask test` fails when they are stale.

use anyhow::Result;

use crate::child;
use crate::workspace::{Workspace, cargo};

/// The tests that compare a page with the code write it instead when this is set.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
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
