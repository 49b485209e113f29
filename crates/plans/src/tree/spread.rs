//! Where the file system puts new directories.

use std::io;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::resolve::Tree;

impl Tree {
    /// Asks the file system to put directories that are made in the root from now on far from each other.
    ///
    /// It is for directories that are filled with many files and removed soon after. ext4 makes new files in the part of the
    /// disk that their directory is in. Without a journal it does not use the number of a removed file again for some
    /// minutes, and on the way to a free number it looks at all that were removed there lately, for every new file: after a
    /// few thousand of them, to make a file takes fifty times as long. In a directory elsewhere none were removed.
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
