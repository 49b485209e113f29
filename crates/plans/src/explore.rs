//! Browsing the files of a sandbox, as its actor sees them.
//!
//! Everything goes through the descriptor of the sandbox's root; see [`Tree`]. Everything here blocks.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use crate::sandbox::is_own;
use crate::{
    Entry, FileFound, FileKind, IgnoreRules, PlanError, RelPath, Sandbox, TEXT_LIMIT_BYTES, Tree, TreeError,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WalkOver {
    /// Skips what git would ignore, unless the walk begins inside it.
    WhatCounts,
    Everything,
}

/// Called for each entry of a walk; decides whether to continue.
pub type Visit<'a> = &'a mut dyn FnMut(&RelPath, FileKind) -> ControlFlow<()>;

/// Read access to the files of a sandbox.
#[derive(Debug)]
pub struct Explorer<'a, 'rules> {
    tree: &'a Tree,
    rules: &'a mut IgnoreRules<'rules>,
}

impl Explorer<'_, '_> {
    #[must_use]
    pub fn tree(&self) -> &Tree {
        self.tree
    }

    /// Walks a directory, or the root, in name order: each directory before its contents. If the path is a file, only
    /// that file is visited. Skips pipes, sockets and devices, anything unreadable, and files of git or tidelock.
    /// Entries that appear or disappear during the walk may or may not be visited.
    pub fn walk(
        &mut self,
        below: Option<&RelPath>,
        over: WalkOver,
        visit: Visit<'_>,
    ) -> Result<(), PlanError> {
        let mut waiting = Vec::new();
        let mut over = over;
        match below {
            None => self.push_names(None, over, &mut waiting)?,
            Some(path) => {
                let found = self
                    .tree
                    .stat(path)
                    .map_err(|error| refused(Some(path), &error))?;
                let kind = found.map(|stat| stat.kind).ok_or_else(|| missing(path))?;
                let is_directory = kind == FileKind::Directory;
                // If the caller names an ignored path, they want to see it.
                if over == WalkOver::WhatCounts && self.is_ignored(path, is_directory)? {
                    over = WalkOver::Everything;
                }
                if is_directory {
                    self.push_names(Some(path), over, &mut waiting)?;
                } else {
                    waiting.push((path.clone(), kind));
                }
            }
        }
        while let Some((path, kind)) = waiting.pop() {
            if visit(&path, kind).is_break() {
                return Ok(());
            }
            if kind == FileKind::Directory {
                self.push_names(Some(&path), over, &mut waiting)?;
            }
        }
        Ok(())
    }

    /// Pushes the entries of a directory onto the stack, so that the first name is popped first.
    fn push_names(
        &mut self,
        directory: Option<&RelPath>,
        over: WalkOver,
        waiting: &mut Vec<(RelPath, FileKind)>,
    ) -> Result<(), PlanError> {
        let names = match self.tree.list(directory) {
            Ok(names) => names,
            Err(error) if directory.is_some() && is_passed_over(&error) => return Ok(()),
            Err(error) => return Err(refused(directory, &error)),
        };
        let first = waiting.len();
        for (name, kind) in names {
            if kind == FileKind::Special || is_own(&name, directory.is_none()) {
                continue;
            }
            let joined = match directory {
                Some(directory) => directory.join(&name),
                None => RelPath::from_path(name.as_ref()),
            };
            // An invalid name is never part of a plan.
            let Ok(path) = joined else { continue };
            if over == WalkOver::WhatCounts && self.is_ignored(&path, kind == FileKind::Directory)? {
                continue;
            }
            waiting.push((path, kind));
        }
        waiting[first..].sort_unstable_by(|one, other| other.0.cmp(&one.0));
        Ok(())
    }

    fn is_ignored(&mut self, path: &RelPath, is_directory: bool) -> Result<bool, PlanError> {
        self.rules
            .is_ignored(path, is_directory)
            .map_err(PlanError::io("reading what is ignored"))
    }
}

pub(crate) fn explore<R>(
    sandbox: &dyn Sandbox,
    look: impl FnOnce(&mut Explorer<'_, '_>) -> R,
) -> Result<R, PlanError> {
    let (mut look, mut seen) = (Some(look), None);
    let looked = sandbox.with_ignore_rules(&mut |rules| {
        let tree = sandbox.tree();
        seen = look.take().map(|look| look(&mut Explorer { tree, rules }));
        Ok(())
    });
    looked.map_err(PlanError::io("reading what is ignored"))?;
    seen.ok_or(PlanError::Closing)
}

/// The directory was removed since it was listed, or can't be read.
fn is_passed_over(error: &TreeError) -> bool {
    error.is_absence() || error.kind() == std::io::ErrorKind::PermissionDenied
}

fn missing(path: &RelPath) -> PlanError {
    PlanError::FileNotFound {
        path: path.to_string(),
    }
}

fn refused(path: Option<&RelPath>, error: &TreeError) -> PlanError {
    PlanError::FileRefused {
        path: path.map(ToString::to_string).unwrap_or_default(),
        why: error.to_string(),
    }
}

/// Reads what is at a path, or at the root. It blocks.
pub(crate) fn read(tree: &Tree, path: Option<&RelPath>) -> Result<FileFound, PlanError> {
    let said = |error: TreeError| {
        let path = path.map(ToString::to_string).unwrap_or_default();
        match error.is_absence() {
            true => PlanError::FileNotFound { path },
            false => PlanError::FileRefused {
                path,
                why: error.to_string(),
            },
        }
    };
    if let Some(path) = path {
        match tree.file(path, TEXT_LIMIT_BYTES) {
            Ok((entry, content)) => return Ok(FileFound::File { entry, content }),
            Err(TreeError::IsADirectory { .. } | TreeError::NotAFile { .. }) => {}
            Err(error) => return Err(said(error)),
        }
        if let Some(Entry::Symlink { target }) = tree.entry(path).map_err(said)? {
            return Ok(FileFound::Symlink {
                target: target.0.into_vec(),
            });
        }
    }
    let mut names: Vec<String> = tree.list(path).map_err(said)?.into_iter().map(shown).collect();
    names.sort();
    Ok(FileFound::Directory { names })
}

/// A name, with a trailing slash for a directory.
fn shown((name, kind): (std::ffi::OsString, FileKind)) -> String {
    let name = match RelPath::from_bytes(name.as_bytes()) {
        Ok(path) => path.to_string(),
        Err(_) => name.to_string_lossy().into_owned(),
    };
    match kind {
        FileKind::Directory => format!("{name}/"),
        FileKind::File | FileKind::Symlink | FileKind::Special => name,
    }
}
