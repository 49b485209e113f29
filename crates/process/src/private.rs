//! Variables of the daemon that are nobody else's business.

use std::ffi::OsStr;

/// The address of the log's database. It carries a password, and whoever has it can write anything into the log.
pub const DATABASE_URL: &str = "TIDELOCK_DATABASE_URL";

/// Whether a variable is for the daemon alone. Such a one is in the environment of no child, whoever asked for it, and in
/// nothing that is kept of an environment.
#[must_use]
pub fn is_private(variable: impl AsRef<OsStr>) -> bool {
    variable.as_ref() == DATABASE_URL
}
