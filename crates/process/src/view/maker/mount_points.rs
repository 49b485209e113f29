//! Mount points in the view: resolved step by step from the root, so that no symbolic link leads elsewhere.
//! Mounts on the way are traversed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::io::Errno;

/// The mode of a directory that is created as a mount point.
const MADE: Mode = Mode::from_raw_mode(0o755);

pub(super) fn existing(path: &Path) -> io::Result<OwnedFd> {
    walk(path, step)
}

/// A directory, created if it is missing.
pub(super) fn made(path: &Path) -> io::Result<OwnedFd> {
    walk(path, |directory, name| match step(directory, name) {
        Err(Errno::NOENT) => {
            match mkdirat(directory, name, MADE) {
                // Somebody else may have created it in the meantime.
                Ok(()) | Err(Errno::EXIST) => step(directory, name),
                Err(error) => Err(error),
            }
        }
        found => found,
    })
}

fn walk(
    path: &Path,
    step: impl Fn(&OwnedFd, &std::ffi::OsStr) -> Result<OwnedFd, Errno>,
) -> io::Result<OwnedFd> {
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(Errno::INVAL.into());
    }
    let mut directory = open(c"/", FLAGS, Mode::empty())?;
    for component in components {
        let Component::Normal(name) = component else {
            return Err(Errno::INVAL.into());
        };
        directory = step(&directory, name)?;
    }
    Ok(directory)
}

const FLAGS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn step(directory: &OwnedFd, name: &std::ffi::OsStr) -> Result<OwnedFd, Errno> {
    openat(directory, name, FLAGS, Mode::empty())
}
