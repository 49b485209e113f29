//! Which configuration of a repository the user has read and accepted.

use std::fmt;
use std::path::Path;

/// Keeps these hashes distinct from other hashes made with the same function.
const CONTEXT: &str = "tidelock 2026-11 repository language server configuration";

/// Identifies one content of one workspace's `.lsp.json`. A missing file counts as a content as well, so that a
/// workspace without one can be trusted until it gets one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigHash([u8; 32]);

impl ConfigHash {
    /// The hash of the file at a canonical path.
    pub fn of(path: &Path, content: Option<&[u8]>) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let path = path.as_os_str().as_bytes();
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        // The length keeps path and content apart.
        hasher.update(&(path.len() as u64).to_le_bytes());
        hasher.update(path);
        hasher.update(&[u8::from(content.is_some())]);
        hasher.update(content.unwrap_or_default());
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigHash({self})")
    }
}

/// Whether the user trusts a configuration. It is called each time a workspace is read.
pub type Trust = dyn Fn(&ConfigHash) -> bool + Send + Sync;
