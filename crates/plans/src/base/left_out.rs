//! What exists beside a base, and what is left out of it.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use crate::RelPath;
use crate::path::{PATH_LIMIT_BYTES, name_as_text};

/// What a workspace has beside its base: files that git ignores. Builds need them, plans don't carry them.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ignored {
    /// Directories that are ignored as a whole, outermost only. A sandbox reads the workspace's own, and writes to its
    /// own copy.
    pub directories: Vec<RelPath>,
    /// Single files that are ignored. A sandbox gets a copy.
    pub files: Vec<RelPath>,
}

/// Something that isn't part of a base or a capture, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The path, written like a [`RelPath`]. Not everything that is left out has a valid one.
    pub path: String,
    pub why: WhyLeftOut,
}

impl LeftOut {
    #[must_use]
    pub fn at(path: &RelPath, why: WhyLeftOut) -> Self {
        let path = path.to_string();
        Self { path, why }
    }

    /// The entry with this name in a directory, or in the root.
    #[must_use]
    pub fn named(directory: Option<&RelPath>, name: &OsStr, why: WhyLeftOut) -> Self {
        let name = name_as_text(name);
        let path = match directory {
            Some(directory) => format!("{directory}/{name}"),
            None => name,
        };
        Self { path, why }
    }

    /// Whether it counts as work if it was made in a sandbox. Pipes and sockets are just leftovers of programs.
    #[must_use]
    pub fn is_work(&self) -> bool {
        self.why != WhyLeftOut::Special
    }
}

/// A name in a directory, or in the root, that can't be part of a path. If it is only too long, the directory is
/// reported instead: there may be any number of such names, of any length.
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
    /// A separate repository: a submodule, or one nested in another. It is visible, but changes in it are not
    /// carried.
    Repository,
    /// Such a repository that was changed in the sandbox. The changes stay there.
    ChangedRepository,
    /// The git directory of a repository that was created in the sandbox. Its files are carried, its commits are not.
    History,
    /// The file is larger than a plan accepts.
    TooLarge,
    /// Something in this directory has a longer path than the system supports.
    TooLong,
    /// A socket, a pipe or a device.
    Special,
    /// A name that can't be carried: git, perhaps on a case-insensitive file system, would treat it as its own.
    Name,
    Unreadable,
    /// More is ignored than a sandbox can take over.
    TooMany,
}
