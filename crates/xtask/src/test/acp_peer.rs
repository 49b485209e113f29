//! The program with the published library of the Agent Client Protocol, which the tests of `tidelock acp` speak with.
//!
//! It has a workspace and a lock of its own: what the library asks of shared crates would change the product. What cannot be
//! built is said, and the tests that want it report a skip.

use std::process::Command;
use std::time::Duration;

use super::bounded;
use crate::workspace::{Workspace, cargo};

/// A hundred and fifty small crates.
const BUILD_WITHIN: Duration = Duration::from_secs(600);

/// Builds it, if that was not done yet.
pub(super) fn build(workspace: &Workspace) {
    let target = workspace.target_directory.join("peers/acp");
    let log = workspace.target_directory.join("acp-peer.log");
    let mut command: Command = cargo();
    command
        .args(["build", "--locked", "--manifest-path"])
        .arg(workspace.root.join("crates/tidelock/peers/acp/Cargo.toml"))
        .arg("--target-dir")
        .arg(target);
    match bounded::run(&mut command, &log, BUILD_WITHIN) {
        Ok(()) => println!(
            "{:<14} built, speaks with `tidelock acp` as its authors do",
            "acp-peer"
        ),
        Err(error) => println!("acp-peer could not be built, so its tests are skipped: {error:#}"),
    }
}
