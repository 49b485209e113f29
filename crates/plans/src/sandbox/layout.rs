//! The parts of a sandbox in its directory.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::contract::{SandboxError, SandboxSpec};
use super::fill::copy_file;
use super::repository::is_absence;
use crate::{MODE_MASK, RelPath};

#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    pub(super) directory: &'a Path,
}

/// The two directories that an overlay needs in addition to its lower one.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) upper: PathBuf,
    pub(super) work: PathBuf,
}

impl<'a> Layout<'a> {
    pub(super) fn of(spec: &'a SandboxSpec) -> Self {
        Self {
            directory: &spec.directory,
        }
    }

    /// The layer of the overlay on the base.
    pub(super) fn layer(&self) -> Layer {
        Layer::below(self.directory.to_owned())
    }

    /// The layer of an ignored directory or a nested repository. It depends only on its path.
    pub(super) fn layer_of(&self, path: &RelPath) -> Layer {
        let name = blake3::hash(path.as_bytes()).to_hex();
        Layer::below(self.directory.join("ignored").join(&name.as_str()[..32]))
    }

    pub(super) fn layer_of_git(&self, name: &str) -> Layer {
        Layer::below(self.directory.join("git-layers").join(name))
    }

    /// The private git directory of an overlay.
    pub(super) fn git(&self) -> PathBuf {
        self.directory.join("git")
    }

    pub(super) fn no_git(&self) -> PathBuf {
        self.directory.join("no-git.txt")
    }

    /// What a layer covers: a directory of the workspace, or an empty one if that doesn't exist.
    pub(super) fn covered(&self, original: &Path) -> Result<PathBuf, SandboxError> {
        if original.is_dir() {
            return Ok(original.to_owned());
        }
        let empty = self.directory.join("empty");
        make_directory(&empty)?;
        Ok(empty)
    }

    /// What an overlay shows in place of the scratch space.
    pub(super) fn lobby(&self) -> PathBuf {
        self.directory.join("lobby")
    }

    /// The files of a copy or a worktree.
    pub(super) fn tree(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// The temporary directory, as a command sees it.
    pub(super) fn temporary(&self) -> PathBuf {
        self.directory.join("tmp")
    }

    /// The objects of the user's repository, as a command in an overlay sees them.
    pub(super) fn objects(&self) -> PathBuf {
        self.directory.join("objects")
    }

    /// The file with the stat data of a copy's or worktree's files.
    pub(super) fn memory(&self) -> PathBuf {
        self.directory.join("memory")
    }
}

impl Layer {
    fn below(directory: PathBuf) -> Self {
        Self {
            upper: directory.join("upper"),
            work: directory.join("work"),
        }
    }

    /// Makes both. The upper one gets the permissions of the directory it covers, since it is the visible one.
    pub(super) fn make(&self, covers: &Path) -> Result<(), SandboxError> {
        make_directory(&self.work)?;
        make_directory(&self.upper)?;
        same_permissions(covers, &self.upper).map_err(SandboxError::io("the permissions of", &self.upper))
    }
}

/// Makes a directory that only its user can access, and its parents.
pub(super) fn make_directory(path: &Path) -> Result<(), SandboxError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(SandboxError::io("making", path))
}

fn same_permissions(from: &Path, to: &Path) -> io::Result<()> {
    let mode = fs::metadata(from)?.permissions().mode() & MODE_MASK;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

/// Copies the workspace's ignored files into a tree. Skips files that were removed in the meantime or can't be read.
pub(super) fn copy_ignored_files(spec: &SandboxSpec, to: &Path) -> Result<(), SandboxError> {
    for path in &spec.ignored.files {
        for directory in path.ancestors() {
            let place = to.join(directory.as_path());
            match fs::create_dir(&place) {
                Ok(()) => {
                    let original = spec.workspace.join(directory.as_path());
                    same_permissions(&original, &place)
                        .map_err(SandboxError::io("the permissions of", &place))?;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(SandboxError::io("making", &place)(error)),
            }
        }
        let (from, to) = (spec.workspace.join(path.as_path()), to.join(path.as_path()));
        match copy_file(&from, &to) {
            Err(error) if is_absence(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            copied => drop(copied.map_err(SandboxError::io("copying", &from))?),
        }
    }
    Ok(())
}

/// A sandbox inside the workspace would contain itself, and one around it would contain the workspace.
pub(super) fn check_places(spec: &SandboxSpec, scratch: &Path) -> io::Result<()> {
    let (workspace, directory) = (&spec.workspace, &spec.directory);
    if !directory.starts_with(scratch) {
        return Err(io::Error::other(format!("it is not below {}", scratch.display())));
    }
    if scratch.starts_with(workspace) || workspace.starts_with(scratch) {
        return Err(io::Error::other(format!(
            "the workspace {} and the scratch space {} overlap",
            workspace.display(),
            scratch.display()
        )));
    }
    Ok(())
}
