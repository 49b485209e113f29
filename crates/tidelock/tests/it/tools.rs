//! Tools that a test needs and that a machine may not have.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Finds a program, or reports that the test is skipped and why. With `CI=true` a skip is a failure.
pub(crate) fn require_tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(&format!("`{name}` is not installed"));
    }
    found
}

/// Finds what `cargo xtask test` has installed for the tests: a program, or a file beside the programs.
pub(crate) fn require_installed(name: &str) -> Option<PathBuf> {
    let directories = env::var_os("TIDELOCK_TEST_SERVERS").unwrap_or_default();
    let found = env::split_paths(&directories)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(&format!(
            "`{name}` is not installed; `cargo xtask test` does that"
        ));
    }
    found
}

/// Reports that the test is skipped and why. With `CI=true` that is a failure.
///
/// The report goes to standard output and, as one line, to the file that `TIDELOCK_SKIP_REPORT` names.
pub(crate) fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED: {test}: {reason}");
    println!("{line}");
    if let Some(report) = env::var_os("TIDELOCK_SKIP_REPORT") {
        let mut file = OpenOptions::new().append(true).create(true).open(report).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    assert_ne!(
        env::var("CI").as_deref(),
        Ok("true"),
        "{line}, and CI=true allows no skips"
    );
}
