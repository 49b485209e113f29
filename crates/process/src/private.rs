//! Variables that are private to the daemon.

use std::ffi::OsStr;

/// The address of the log's database. It contains a password, and whoever has it can write anything into the log.
pub const DATABASE_URL: &str = "TIDELOCK_DATABASE_URL";

/// Whether a variable is private to the daemon. Such a variable is never passed to a child, whoever asked for it,
/// and never stored with an environment.
#[must_use]
pub fn is_private(variable: impl AsRef<OsStr>) -> bool {
    variable.as_ref() == DATABASE_URL
}
