//! Looking at a path of a sandbox.

use std::os::unix::ffi::OsStrExt;

use crate::answers::FileFound;
use crate::contents::TEXT_LIMIT_BYTES;
use crate::entry::Entry;
use crate::error::PlanError;
use crate::path::RelPath;
use crate::tree::{FileKind, Tree, TreeError};

/// What is at a path, or at the root. It blocks.
pub(crate) fn read(tree: &Tree, path: Option<&RelPath>) -> Result<FileFound, PlanError> {
    let said = |error: TreeError| {
        let path = path.map(ToString::to_string).unwrap_or_default();
        match error.kind() {
            std::io::ErrorKind::NotFound => PlanError::FileNotFound { path },
            _ => PlanError::FileRefused {
                path,
                why: error.to_string(),
            },
        }
    };
    let entry = match path {
        None => Some(Entry::Directory),
        Some(path) => tree.entry(path).map_err(said)?,
    };
    match (entry, path) {
        (Some(entry @ Entry::File { .. }), Some(path)) => Ok(FileFound::File {
            content: tree.read(path, TEXT_LIMIT_BYTES).map_err(said)?,
            entry,
        }),
        (Some(Entry::Symlink { target }), _) => Ok(FileFound::Symlink {
            target: target.0.into_vec(),
        }),
        (Some(_), path) => {
            let mut names: Vec<String> = tree.list(path).map_err(said)?.into_iter().map(shown).collect();
            names.sort();
            Ok(FileFound::Directory { names })
        }
        (None, path) => Err(PlanError::FileNotFound {
            path: path.map(ToString::to_string).unwrap_or_default(),
        }),
    }
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
