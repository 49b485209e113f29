//! The git repository that a workspace is in.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Repository {
    /// The root of its working tree. The workspace is this directory or lies below it.
    pub(super) root: PathBuf,
    /// What git keeps for this working tree: the index.
    pub(super) git_directory: PathBuf,
    /// What git keeps for all working trees of the repository: `info/exclude`.
    pub(super) common_directory: PathBuf,
}

impl Repository {
    /// The nearest repository at or above a directory, found as git does: without leaving the file system.
    pub(super) fn find(workspace: &Path) -> Option<Self> {
        let device = fs::metadata(workspace).ok()?.dev();
        workspace
            .ancestors()
            .take_while(|directory| fs::metadata(directory).is_ok_and(|found| found.dev() == device))
            .find_map(Self::at)
    }

    fn at(root: &Path) -> Option<Self> {
        let git_directory = git_directory(&root.join(".git"))?;
        if !git_directory.join("HEAD").exists() {
            return None;
        }
        let common_directory = match first_line(&git_directory.join("commondir")) {
            Some(common) => git_directory.join(common),
            None => git_directory.clone(),
        };
        Some(Self {
            root: root.to_owned(),
            git_directory,
            common_directory,
        })
    }
}

/// `.git` is a directory, or in worktrees and submodules a file that points to one.
fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    let found = fs::metadata(dot_git).ok()?;
    if found.is_dir() {
        return Some(dot_git.to_owned());
    }
    let line = first_line(dot_git)?;
    let target = line.as_os_str().as_bytes().strip_prefix(b"gitdir: ")?;
    Some(dot_git.parent()?.join(OsStr::from_bytes(target)))
}

fn first_line(file: &Path) -> Option<PathBuf> {
    let text = fs::read(file).ok()?;
    let line = text.split(|byte| *byte == b'\n').next()?.trim_ascii_end();
    Some(PathBuf::from(OsStr::from_bytes(line)))
}
