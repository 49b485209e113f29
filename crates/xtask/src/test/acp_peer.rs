//! The program with the published Agent Client Protocol library, which the tests of `tidelock acp` talk to.
//!
//! It has its own workspace and lock file: the library's requirements on shared crates would change the product. If
//! it can't be built, that is reported, and the tests that need it report a skip.

use std::process::Command;
use std::time::Duration;

use super::bounded;
use crate::workspace::{Workspace, cargo};

/// A hundred and fifty small crates.
const BUILD_WITHIN: Duration = Duration::from_secs(600);

/// Builds it, unless that is already done.
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
