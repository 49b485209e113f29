//! What is beside a base, and what is left out.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use crate::RelPath;
use crate::path::{PATH_LIMIT_BYTES, name_as_text};

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
    /// Where it is, as a [`RelPath`] is written. Not everything that is left out has a path that could be one.
    pub path: String,
    pub why: WhyLeftOut,
}

impl LeftOut {
    #[must_use]
    pub fn at(path: &RelPath, why: WhyLeftOut) -> Self {
        let path = path.to_string();
        Self { path, why }
    }

    /// What has this name in a directory, or in the root.
    #[must_use]
    pub fn named(directory: Option<&RelPath>, name: &OsStr, why: WhyLeftOut) -> Self {
        let name = name_as_text(name);
        let path = match directory {
            Some(directory) => format!("{directory}/{name}"),
            None => name,
        };
        Self { path, why }
    }

    /// Whether it is work, if it was made in a sandbox. Pipes and sockets are what programs leave behind.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.why != WhyLeftOut::Special
    }
}

/// A name in a directory, or in the root, that no path can be made of. If it is only too long, the directory is told: there
/// may be any number of such names, of any length.
pub(crate) fn uncarried(directory: Option<&RelPath>, name: &OsStr) -> LeftOut {
    match directory {
        Some(directory) if directory.as_bytes().len() + name.len() >= PATH_LIMIT_BYTES => {
            LeftOut::at(directory, WhyLeftOut::TooLong)
        }
        _ => LeftOut::named(directory, name, WhyLeftOut::Name),
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// It is a repository of its own: a submodule, or one inside another. It is seen, and what changes in it is not
    /// carried.
    Repository,
    /// It is such a repository, and was changed in the sandbox. The changes stay there.
    ChangedRepository,
    /// It is the git directory of a repository that was made in the sandbox. Its files are carried, its commits are not.
    History,
    /// The file has more bytes than a plan takes.
    TooLarge,
    /// Something in this directory has a longer path than the system takes.
    TooLong,
    /// It is a socket, a pipe or a device.
    Special,
    /// A name that cannot be carried: git, or a git on a file system that folds case, would take it for its own.
    Name,
    Unreadable,
    /// More is ignored than a sandbox takes over.
    TooMany,
}
