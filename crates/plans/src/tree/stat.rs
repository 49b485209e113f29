//! The stat data of a path.

use rustix::fs::{FileType, Stat};

use crate::MODE_MASK;

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    /// A pipe, a socket or a device.
    Special,
}

/// The stat data of a path. If two stats at different times are equal, the file wasn't written in between, as far as
/// the file system's clock can tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileStat {
    pub kind: FileKind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permissions, see [`MODE_MASK`].
    pub mode: u32,
    /// When its content was last written, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// When anything about it last changed.
    pub changed_ns: i128,
    pub device: u64,
    pub inode: u64,
    pub links: u64,
}

impl From<FileType> for FileKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

impl From<Stat> for FileStat {
    #[expect(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the fields of the system's structure have other types on other machines"
    )]
    fn from(stat: Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: u64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            size: stat.st_size.unsigned_abs(),
            mode: stat.st_mode & MODE_MASK,
            modified_ns: nanoseconds(stat.st_mtime as i64, u64::from(stat.st_mtime_nsec)),
            changed_ns: nanoseconds(stat.st_ctime as i64, u64::from(stat.st_ctime_nsec)),
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            links: u64::from(stat.st_nlink),
        }
    }
}
