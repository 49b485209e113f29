//! The servers that are really here, as `cargo xtask test` installs them.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use lsp::{Environment, Registry, RegistrySettings};

use crate::fixtures::FIXTURES;
use crate::servers_tree::{Tree, nothing};

/// Directories with programs, joined as in `PATH`.
const SERVERS: &str = "TIDELOCK_TEST_SERVERS";
/// Where a test says that it could not run.
const SKIP_REPORT: &str = "TIDELOCK_SKIP_REPORT";
/// They come with a toolchain; a machine need not have it.
const WHERE_THE_MACHINE_HAS_IT: [&str; 2] = ["rust-analyzer", "gopls"];

/// Our own variables, with the installed servers in front of the `PATH`.
pub(crate) fn environment() -> Environment {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let servers = std::env::var_os(SERVERS).unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&servers)
        .chain(std::env::split_paths(&path))
        .filter(|directory| directory.is_absolute())
        .collect();
    let path: OsString = std::env::join_paths(directories).unwrap();
    let others = std::env::vars_os().filter(|(name, _)| name != "PATH");
    Environment::new(others.chain([("PATH".into(), path)]))
}

/// Says that a server is not here: as a skip, or as a note if it need not be.
pub(crate) fn report_missing(server: &str) {
    if WHERE_THE_MACHINE_HAS_IT.contains(&server) {
        println!("note: {server} is not on this machine");
        return;
    }
    println!("SKIPPED: {server} is not here");
    if let Some(report) = std::env::var_os(SKIP_REPORT) {
        let mut report = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(report)
            .unwrap();
        report
            .write_all(format!("SKIPPED: {server} is not here\n").as_bytes())
            .unwrap();
    }
}

#[test]
fn a_newcomers_file_gets_a_server_that_is_here() {
    for fixture in FIXTURES {
        let tree = Tree::new();
        fixture.copy_to(&tree.workspace());
        let settings = RegistrySettings {
            environment: environment(),
            user_configuration: None,
            data_directory: tree.path("data"),
        };
        let registry = Registry::new(settings, Arc::new(nothing));
        let file = tree.workspace().join(fixture.asked.file);
        let selection = registry.servers_for(&file, &tree.workspace()).unwrap();
        let Some(primary) = selection.primary else {
            assert!(
                !selection.missing.is_empty(),
                "{}: nothing said how to have one",
                fixture.name
            );
            report_missing(fixture.servers[0]);
            continue;
        };
        assert_eq!(*primary.root, *tree.workspace(), "{}", fixture.name);
    }
}
