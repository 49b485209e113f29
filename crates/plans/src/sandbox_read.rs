//! Looking at a path of a sandbox.

use std::os::unix::ffi::OsStrExt;

use crate::{Entry, FileFound, FileKind, PlanError, RelPath, TEXT_LIMIT_BYTES, Tree, TreeError};

/// What is at a path, or at the root. It blocks.
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

/// A name, with a slash if it is a directory.
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
