//! Places in the view: walked step by step from the root, so that no symbolic link leads elsewhere. What is mounted on the
//! way is what is walked through.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::io::Errno;

/// The mode of a directory that is made to be mounted over.
const MADE: Mode = Mode::from_raw_mode(0o755);

/// A directory that is there.
pub(super) fn existing(path: &Path) -> io::Result<OwnedFd> {
    walk(path, step)
}

/// A directory that is made if it is not there.
pub(super) fn made(path: &Path) -> io::Result<OwnedFd> {
    walk(path, |directory, name| match step(directory, name) {
        Err(Errno::NOENT) => {
            match mkdirat(directory, name, MADE) {
                // Somebody else may have made it meanwhile.
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
