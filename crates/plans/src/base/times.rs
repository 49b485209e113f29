//! The times of files in an image.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::stat_cache::FileTime;

pub(super) fn timestamps(modified: FileTime) -> Timestamps {
    let moment = Timespec {
        tv_sec: modified.seconds,
        tv_nsec: modified.nanoseconds.into(),
    };
    Timestamps {
        last_access: moment,
        last_modification: moment,
    }
}

/// Moves the mtime of an entry in an image forward, if it is earlier. A missing entry is ignored.
pub(super) fn forward(
    directory: BorrowedFd<'_>,
    name: impl Arg + Copy,
    modified: FileTime,
) -> io::Result<()> {
    let found: Stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if FileTime::modified(&found) < modified {
        let times = timestamps(modified);
        rustix::fs::utimensat(directory.as_fd(), name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}
