//! Where the file system puts new directories.

use std::io;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::resolve::Tree;

impl Tree {
    /// Asks the file system to place new directories in the root far apart from each other.
    ///
    /// This is for directories that are filled with many files and removed soon after. ext4 creates new files in the
    /// part of the disk where their directory is. Without a journal, it doesn't reuse the inode of a removed file for
    /// some minutes, and to find a free one it checks all that were recently removed there, for every new file: after a
    /// few thousand of them, creating a file takes fifty times as long. A directory in another part of the disk avoids
    /// that.
    pub(crate) fn spread_directories(&self) -> io::Result<()> {
        let root = self.directory(None)?;
        let flags = ioctl_getflags(&root)?;
        if !flags.contains(IFlags::TOPDIR) {
            ioctl_setflags(&root, flags | IFlags::TOPDIR)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::fstatfs;

    use super::*;

    const EXT: i64 = 0xef53;

    #[test]
    fn where_the_file_system_can_it_is_asked_once_and_nothing_else_changes() {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree::open(directory.path()).unwrap();
        let open = || tree.directory(None).unwrap();
        let is_ext = fstatfs(open()).unwrap().f_type == EXT;
        let before = ioctl_getflags(open()).unwrap_or(IFlags::empty());
        for _ in 0..2 {
            let asked = tree.spread_directories();
            let after = ioctl_getflags(open()).unwrap_or(IFlags::empty());
            match asked {
                Ok(()) => assert_eq!(after, before | IFlags::TOPDIR),
                Err(_) => assert_eq!((after, is_ext), (before, false)),
            }
        }
    }
}
