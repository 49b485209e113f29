//! A tripwire tells whether anything has changed in some directories since they were covered.
//!
//! A [`Watch`](crate::Watch) tells what has changed, and is a little behind. A tripwire only tells whether
//! something has, and is never behind: the kernel queues an event before the call that caused it returns, and
//! nobody removes events from this queue. So a look at the queue sees every change that was complete before the
//! look. It needs no thread, and it wakes nobody.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::tree::MAX_DIRECTORIES;

/// A tripwire takes at most this fraction of a user's inotify watches, because editors need some too.
const SHARE: usize = 4;

/// File systems that only this machine changes, by their `statfs` numbers: ext, XFS, Btrfs, tmpfs, F2FS, bcachefs
/// and ZFS. On others (NFS, FUSE, 9P, an overlay), changes may come from elsewhere without an event.
const LOCAL: [u64; 7] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0xca45_1a4e,
    0x2fc1_2fc1,
];

/// Covers directories, and tells whether something in them has changed since.
///
/// It doesn't see changes that the kernel doesn't report for the directory: through another hard link in a
/// directory that isn't covered, or through a memory mapping until the file is closed. It doesn't see mounts
/// either.
#[derive(Debug)]
pub struct Tripwire {
    /// Nobody reads it, so events stay in it.
    queue: OwnedFd,
    most: i32,
}

impl Tripwire {
    /// A tripwire that covers nothing.
    ///
    /// # Errors
    /// The system has no more inotify queues for this user.
    pub fn new() -> io::Result<Self> {
        let allowed = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches")?;
        let allowed: usize = allowed.trim().parse().map_err(io::Error::other)?;
        let most = MAX_DIRECTORIES.min(allowed / SHARE);
        Ok(Self {
            queue: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            most: i32::try_from(most).map_err(io::Error::other)?,
        })
    }

    /// Covers a directory: its names, and the files in it, but not the directories below it. Cover it before you
    /// read it: then what you read can't change unnoticed.
    ///
    /// # Errors
    /// The directory isn't covered: the system doesn't allow it, there are too many directories, or other
    /// machines may change it.
    pub fn cover(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        let kind = rustix::fs::fstatfs(directory)?.f_type;
        if !u64::try_from(kind).is_ok_and(|kind| LOCAL.contains(&kind)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let changes = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            // A file that was changed through a memory mapping is only reported when it is closed.
            | WatchFlags::CLOSE_WRITE;
        // One event per directory is enough, so the queue stays short however much is written.
        let manner = WatchFlags::ONESHOT | WatchFlags::ONLYDIR | WatchFlags::EXCL_UNLINK;
        // By its descriptor, so that it is this directory and not one that has taken its name.
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let number = inotify::add_watch(&self.queue, name, changes | manner)?;
        // The kernel numbers the watches of a queue from one.
        if number > self.most {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(())
    }

    /// Whether nothing has changed. Once something has, this stays false.
    ///
    /// # Errors
    /// The queue can't be queried.
    pub fn is_intact(&self) -> io::Result<bool> {
        Ok(rustix::io::ioctl_fionread(self.queue.as_fd())? == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn covered(directories: &[&Path]) -> Tripwire {
        let tripwire = Tripwire::new().unwrap();
        for directory in directories {
            tripwire.cover(File::open(directory).unwrap().as_fd()).unwrap();
        }
        tripwire
    }

    #[test]
    fn every_kind_of_change_trips_it_at_once_and_reading_does_not() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 12] = [
            ("write", |root| fs::write(root.join("d/f"), "new").unwrap()),
            ("append", |root| {
                let file = OpenOptions::new().append(true).open(root.join("d/f"));
                file.unwrap().write_all(b"x").unwrap();
            }),
            ("truncate", |root| {
                let file = OpenOptions::new().write(true).open(root.join("d/f"));
                file.unwrap().set_len(1).unwrap();
            }),
            ("create", |root| fs::write(root.join("d/g"), "").unwrap()),
            ("remove", |root| fs::remove_file(root.join("d/f")).unwrap()),
            ("permissions", |root| {
                fs::set_permissions(root.join("d/f"), Permissions::from_mode(0o600)).unwrap();
            }),
            ("rename", |root| {
                fs::rename(root.join("d/f"), root.join("d/g")).unwrap()
            }),
            ("move out", |root| {
                fs::rename(root.join("d/f"), root.join("g")).unwrap()
            }),
            ("move in", |root| {
                fs::rename(root.join("f"), root.join("d/g")).unwrap()
            }),
            ("replace", |root| {
                fs::rename(root.join("f"), root.join("d/f")).unwrap()
            }),
            ("new directory", |root| fs::create_dir(root.join("d/e")).unwrap()),
            ("link", |root| {
                fs::hard_link(root.join("f"), root.join("d/g")).unwrap()
            }),
        ];
        for (name, change) in changes {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            fs::create_dir(root.join("d")).unwrap();
            fs::write(root.join("d/f"), "old").unwrap();
            fs::write(root.join("f"), "other").unwrap();
            let tripwire = covered(&[&root.join("d")]);
            fs::read(root.join("d/f")).unwrap();
            fs::read_dir(root.join("d")).unwrap().for_each(drop);
            fs::write(root.join("elsewhere"), "").unwrap();
            assert!(tripwire.is_intact().unwrap(), "before: {name}");
            change(root);
            assert!(!tripwire.is_intact().unwrap(), "{name}");
            assert!(!tripwire.is_intact().unwrap(), "it stays so: {name}");
        }
    }

    /// Nobody reads the queue, so it must not grow with what is written.
    #[test]
    fn a_directory_is_told_of_once() {
        let root = tempfile::tempdir().unwrap();
        let tripwire = covered(&[root.path()]);
        fs::write(root.path().join("first"), "").unwrap();
        let queued = rustix::io::ioctl_fionread(&tripwire.queue).unwrap();
        for number in 0..100 {
            fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(rustix::io::ioctl_fionread(&tripwire.queue).unwrap(), queued);
    }

    #[test]
    fn what_others_may_change_is_not_covered() {
        let proc = File::open("/proc/self").unwrap();
        let covered = Tripwire::new().unwrap().cover(proc.as_fd());
        assert_eq!(covered.unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn there_is_an_end_to_what_it_covers() {
        let root = tempfile::tempdir().unwrap();
        let tripwire = Tripwire {
            most: 2,
            ..Tripwire::new().unwrap()
        };
        let cover = |name: &str| {
            fs::create_dir(root.path().join(name)).unwrap();
            let directory = File::open(root.path().join(name)).unwrap();
            tripwire.cover(directory.as_fd()).map_err(|error| error.kind())
        };
        assert_eq!(
            ["a", "b", "c"].map(cover),
            [Ok(()), Ok(()), Err(io::ErrorKind::QuotaExceeded)]
        );
    }
}
