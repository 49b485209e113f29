//! What is beside a base, and what is left out.

use serde::{Deserialize, Serialize};

use crate::path::RelPath;

/// What a workspace has beside its base: what git ignores. Builds want it, plans do not carry it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ignored {
    /// Directories that are ignored whole, the outermost ones. A sandbox sees the workspace's own, and writes to its own.
    pub directories: Vec<RelPath>,
    /// Single files that are ignored. A sandbox gets a copy.
    pub files: Vec<RelPath>,
}

/// Something that is no part of a base or of a capture, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Where it is.
    pub path: RelPath,
    /// Why it is left out.
    pub why: WhyLeftOut,
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// It is a repository of its own: a submodule, or one inside another. It is seen, and what changes in it is not
    /// carried.
    Repository,
    /// It is a socket, a pipe or a device.
    Special,
    /// A name in this directory cannot be carried: it is too long, or is one that git keeps for itself.
    Name,
    /// It cannot be read.
    Unreadable,
    /// More is ignored than a sandbox takes over.
    TooMany,
}
