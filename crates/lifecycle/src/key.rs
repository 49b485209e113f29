//! What identifies a server, and each of its processes.

use std::{fmt, path::Path, sync::Arc};

/// Identifies a server: its name in the configuration, and the workspace root it serves.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerKey {
    /// The name in the configuration.
    pub server: Arc<str>,
    /// The workspace root that it serves.
    pub root: Arc<Path>,
}

impl ServerKey {
    /// The key of a server at a root.
    pub fn new(server: impl Into<Arc<str>>, root: impl Into<Arc<Path>>) -> Self {
        Self {
            server: server.into(),
            root: root.into(),
        }
    }
}

impl fmt::Display for ServerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}", self.server, self.root.display())
    }
}

/// Identifies a process of a key. It goes up by one with each process that is launched. Zero is before the first
/// one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerGeneration(u64);

impl ServerGeneration {
    /// Restores a generation from a number, for example one sent by an API client.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The generation as a number, to store or send.
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for ServerGeneration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
