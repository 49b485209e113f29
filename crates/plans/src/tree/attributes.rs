//! The metadata of a file besides its content and permissions: its owner, access lists, other extended attributes, and
//! set-user-id and similar bits. It isn't part of an entry, and must not be lost when a file is replaced.

use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::TreeError;
use super::resolve::Tree;
use super::stat::{FileKind, FileStat};
use crate::{MODE_MASK, RelPath};

/// The system's size limit for the list of names, and for one value.
const LIMIT_BYTES: usize = 64 * 1024;
const USUAL_BYTES: usize = 1024;
/// Set-user-id, set-group-id and the sticky bit.
const SPECIAL_BITS: u32 = 0o7000;

/// The metadata of a file or directory besides its content and permissions.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct FileAttributes {
    owner: (u32, u32),
    /// Set-user-id and similar bits.
    #[serde(default, skip_serializing_if = "is_zero")]
    special: u32,
    /// The extended attributes, including access lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extended: Vec<(String, Vec<u8>)>,
}

fn is_zero(bits: &u32) -> bool {
    *bits == 0
}

impl FileAttributes {
    pub(crate) fn is_special(&self) -> bool {
        self.special != 0 || !self.extended.is_empty()
    }

    /// Its approximate size.
    pub(crate) fn bytes(&self) -> usize {
        let extended = self.extended.iter();
        // A byte is written as up to four characters.
        extended.map(|(name, value)| name.len() + 4 * value.len()).sum()
    }

    fn of(open: impl AsFd) -> Result<Self, Errno> {
        let stat = fstat(&open)?;
        let names = match sized(|buffer| flistxattr(&open, buffer)) {
            Ok(names) => names,
            // The file system doesn't support them.
            Err(Errno::NOTSUP) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut extended = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let Ok(name) = std::str::from_utf8(name) else {
                continue;
            };
            match sized(|buffer| fgetxattr(&open, name, buffer)) {
                Ok(value) => extended.push((name.to_owned(), value)),
                // It was removed in the meantime, or only its owner may see it.
                Err(Errno::NODATA | Errno::ACCESS | Errno::PERM | Errno::NOTSUP) => {}
                Err(error) => return Err(error),
            }
        }
        extended.sort();
        Ok(Self {
            owner: (stat.st_uid, stat.st_gid),
            special: stat.st_mode & SPECIAL_BITS,
            extended,
        })
    }

    fn give(&self, open: impl AsFd, mode: u32) -> Result<(), Errno> {
        // The owner may write extended attributes only if the file is writable.
        fchmod(&open, Mode::from_raw_mode(0o700))?;
        for (name, value) in &self.extended {
            match fsetxattr(&open, name.as_str(), value, XattrFlags::empty()) {
                Ok(()) => {}
                // Labels and capabilities belong to the system: users who may not set them get the defaults.
                Err(Errno::PERM | Errno::NOTSUP | Errno::ACCESS)
                    if name.starts_with("security.") || name.starts_with("trusted.") => {}
                Err(error) => return Err(error),
            }
        }
        let special = match own(&open, self.owner)? {
            Owned::Same => self.special,
            // A set-user-id program must not run as a different owner.
            Owned::Other => 0,
        };
        fchmod(&open, Mode::from_raw_mode(special | (mode & MODE_MASK)))
    }
}

enum Owned {
    Same,
    Other,
}

/// Sets the owner, as far as the user may.
fn own(open: impl AsFd, (user, group): (u32, u32)) -> Result<Owned, Errno> {
    let stat = fstat(&open)?;
    if (stat.st_uid, stat.st_gid) == (user, group) {
        return Ok(Owned::Same);
    }
    let (user_id, group_id) = (Uid::from_raw(user), Gid::from_raw(group));
    let tries = [(Some(user_id), Some(group_id)), (None, Some(group_id))];
    for (to_user, to_group) in tries {
        match fchown(&open, to_user, to_group) {
            Ok(()) => break,
            Err(Errno::PERM | Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    let stat = fstat(&open)?;
    match (stat.st_uid, stat.st_gid) == (user, group) {
        true => Ok(Owned::Same),
        false => Ok(Owned::Other),
    }
}

fn sized(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    for bytes in [USUAL_BYTES, LIMIT_BYTES] {
        let mut buffer = vec![0; bytes];
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if bytes < LIMIT_BYTES => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::RANGE)
}

impl Tree {
    /// The metadata of a file or directory; `None` for everything else, and if the path doesn't exist.
    pub(crate) fn attributes(&self, path: &RelPath) -> Result<Option<FileAttributes>, TreeError> {
        let failed = |error: Errno| TreeError::of("read the attributes of", path, error);
        let found = match self.stat(path)? {
            Some(FileStat {
                kind: FileKind::File, ..
            }) => FileAttributes::of(&self.open_file(path)?),
            Some(FileStat {
                kind: FileKind::Directory,
                ..
            }) => FileAttributes::of(&self.directory(Some(path))?),
            _ => return Ok(None),
        };
        found.map(Some).map_err(failed)
    }

    /// Sets these attributes and permissions on a file or directory and syncs them to disk, unless it already has them.
    pub(crate) fn set_attributes(
        &self,
        path: &RelPath,
        attributes: &FileAttributes,
        mode: u32,
    ) -> Result<(), TreeError> {
        let failed = |error: Errno| TreeError::of("set the attributes of", path, error);
        if self.attributes(path)?.as_ref() == Some(attributes) {
            return Ok(());
        }
        let open = match self.stat(path)? {
            Some(stat) if stat.kind == FileKind::Directory => self.directory(Some(path))?,
            _ => self.open_file(path)?.into(),
        };
        attributes.give(&open, mode).map_err(failed)?;
        match rustix::fs::fsync(&open) {
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}
