//! A directory for files that live as long as the daemon.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::home::Home;

/// The directory. Dropping this removes it and everything in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates an empty directory, removing what an earlier daemon left. Only the owner of the home may call this.
    pub(crate) fn make(home: &Home) -> io::Result<Self> {
        let path = home.scratch();
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&path)?,
        }
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If something can't be removed, the next daemon removes it.
        drop(fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_daemon_is_found_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: directory.path().to_owned(),
            state: directory.path().to_owned(),
        };
        fs::create_dir_all(home.scratch().join("old")).unwrap();
        let scratch = Scratch::make(&home).unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        fs::write(scratch.path().join("new"), "").unwrap();
        drop(scratch);
        assert!(!home.scratch().exists());
    }
}
