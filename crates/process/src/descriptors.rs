//! Raises the limit of open files of this process to the maximum, but not that of its commands.
//!
//! The soft limit exists for programs that can't handle a high one: some iterate over all numbers up to it, and
//! some keep descriptors in sets of a fixed size. A daemon with a connection per reader isn't one of them, but
//! its commands may be. So the original limit is remembered and restored for them.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised. Like the limit itself, it belongs to the process.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit of this process as far as possible. Returns the new limit; `None` if there is none.
pub fn raise_open_files() -> Option<u64> {
    let limits = getrlimit(Resource::Nofile);
    BEFORE.get_or_init(|| limits.current);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limits.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limits.current
        }
    }
}

/// The soft limit that commands get, if it was raised.
pub(crate) fn before_raise() -> Option<u64> {
    BEFORE.get().copied().flatten()
}

/// Restores the soft limit. A lower hard limit takes precedence.
pub(crate) fn take_back(before: Option<u64>) -> std::io::Result<()> {
    let Some(before) = before else {
        return Ok(());
    };
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(before, |maximum| maximum.min(before)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
