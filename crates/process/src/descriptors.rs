//! How many files this process may have open: as many as the system allows it, and a command as many as before.
//!
//! The soft limit is there for programs that cannot bear a high one: some walk through all numbers up to it, and some
//! keep descriptors in sets of a fixed size. A daemon with a connection for every reader is not one of them, and its
//! commands may be. So what it was is remembered, and given back to them.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised. It is of the process, as the limit itself is.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit of this process as far as it may, and says what it is then; `None` for no limit.
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
            tracing::warn!(%error, "the limit of open files cannot be raised");
            limits.current
        }
    }
}

/// The soft limit that commands get, if it was raised.
pub(crate) fn before_raise() -> Option<u64> {
    BEFORE.get().copied().flatten()
}

/// Takes the soft limit back to what it was. A hard limit that is lower counts.
pub(crate) fn take_back(before: Option<u64>) -> std::io::Result<()> {
    let Some(before) = before else {
        return Ok(());
    };
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(before, |maximum| maximum.min(before)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
