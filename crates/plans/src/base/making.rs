//! An image under construction, kept apart from the others.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::error::BaseError;
use super::info::Info;
use super::store::{MAKING_PREFIX, Store, remove_tree};
use super::times::timestamps;
use crate::scan::random_name;
use crate::stat_cache::FileTime;
use crate::{MODE_MASK, Manifest, RelPath};

/// The default permissions of a directory.
const DIRECTORY_MODE: u32 = 0o755;
/// The permissions that we need on all directories of an image, to make and remove it.
const OWNER_MODE: u32 = 0o700;

/// An image under construction. Unless it is put in place, it is removed completely.
#[derive(Debug)]
pub(super) struct Making {
    path: PathBuf,
    tree: OwnedFd,
    /// Files that haven't been placed in the tree yet.
    incoming: OwnedFd,
    is_in_place: bool,
}

/// The mode and times of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dress {
    pub(super) mode: u32,
    pub(super) modified: Option<FileTime>,
}

impl Dress {
    /// The default for a directory.
    pub(super) const PLAIN: Self = Self {
        mode: DIRECTORY_MODE,
        modified: None,
    };
}

impl Making {
    pub(super) fn begin(store: &Store) -> Result<Self, BaseError> {
        let path = store.directory.join(format!("{MAKING_PREFIX}{}", random_name()));
        let begun = || -> io::Result<(OwnedFd, OwnedFd)> {
            let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
            make(&path)?;
            make(&path.join("tree"))?;
            make(&path.join("incoming"))?;
            Ok((open(&path.join("tree"))?, open(&path.join("incoming"))?))
        };
        match begun() {
            Ok((tree, incoming)) => Ok(Self {
                path,
                tree,
                incoming,
                is_in_place: false,
            }),
            Err(error) => {
                remove_tree(&path).ok();
                Err(BaseError::io("making", &path)(error))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn tree(&self) -> BorrowedFd<'_> {
        self.tree.as_fd()
    }

    pub(super) fn incoming(&self) -> BorrowedFd<'_> {
        self.incoming.as_fd()
    }

    pub(super) fn failed(&self, what: &str) -> impl FnOnce(io::Error) -> BaseError {
        BaseError::io(what, &self.path)
    }

    /// Makes directories, given in path order.
    pub(super) fn make_directories<'a>(
        &self,
        paths: impl Iterator<Item = &'a RelPath>,
    ) -> Result<(), BaseError> {
        for path in paths {
            rustix::fs::mkdirat(&self.tree, path.as_path(), Mode::from_raw_mode(OWNER_MODE))
                .map_err(|error| self.failed("making directories in")(error.into()))?;
        }
        Ok(())
    }

    /// Sets the permissions and times of directories, once nothing more is put into them.
    pub(super) fn dress<'a>(
        &self,
        directories: impl Iterator<Item = (Option<&'a RelPath>, Dress)>,
    ) -> Result<(), BaseError> {
        for (path, dress) in directories {
            let name = path.map_or(OsStr::new("."), |path| path.as_path().as_os_str());
            let mode = Mode::from_raw_mode((dress.mode & MODE_MASK) | OWNER_MODE);
            let dressed = rustix::fs::chmodat(&self.tree, name, mode, AtFlags::empty()).and_then(|()| {
                dress.modified.map_or(Ok(()), |modified| {
                    rustix::fs::utimensat(&self.tree, name, &timestamps(modified), AtFlags::SYMLINK_NOFOLLOW)
                })
            });
            dressed.map_err(|error| self.failed("making directories in")(error.into()))?;
        }
        Ok(())
    }

    /// Writes the manifest. Nothing in the image changes after this.
    pub(super) fn write(&self, manifest: &Manifest) -> Result<(), BaseError> {
        let written = || -> io::Result<()> {
            fs::remove_dir_all(self.path.join("incoming"))?;
            fs::write(self.path.join("manifest"), manifest.encode())?;
            Info::of_this_boot(manifest.bytes()).write(&self.path)
        };
        written().map_err(self.failed("writing"))
    }

    /// Keeps the image, which has been put in place.
    pub(super) fn run_id(&mut self) {
        self.is_in_place = true;
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if !self.is_in_place
            && let Err(error) = remove_tree(&self.path)
        {
            tracing::warn!(%error, "an image that was not finished stays until the next start");
        }
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
