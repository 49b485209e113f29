//! Converts files of a sandbox from and to the wire.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plans::{BadPath, FileFound, FileOperation, RelPath, SeenFile};

use super::changesets::mode;

/// Why a write is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadOperation {
    Path { field: &'static str, bad: BadPath },
    Field { field: &'static str, why: &'static str },
}

pub(crate) fn file_to_wire(path: &str, found: FileFound) -> protocol::PlanFile {
    let mut file = protocol::PlanFile {
        path: path.to_owned(),
        kind: String::new(),
        text: None,
        base64: None,
        target: None,
        names: Vec::new(),
        hash: None,
        mode: None,
    };
    match found {
        FileFound::File { entry, content } => {
            file.kind = "file".to_owned();
            file.hash = entry.content().map(|hash| hash.to_string());
            file.mode = mode(&entry);
            match String::from_utf8(content) {
                Ok(text) => file.text = Some(text),
                Err(error) => file.base64 = Some(STANDARD.encode(error.as_bytes())),
            }
        }
        FileFound::Symlink { target } => {
            file.kind = "symlink".to_owned();
            file.target = Some(String::from_utf8_lossy(&target).into_owned());
        }
        FileFound::Directory { names } => {
            file.kind = "directory".to_owned();
            file.names = names;
        }
    }
    file
}

/// Validates a requested write.
pub(crate) fn operation_of(operation: protocol::FileOperation) -> Result<FileOperation, BadOperation> {
    Ok(match operation {
        protocol::FileOperation::Write {
            path,
            text,
            base64,
            executable,
            if_hash,
        } => FileOperation::Write {
            path: path_of("path", &path)?,
            content: content_of(text, base64)?,
            executable,
            seen: if_hash.as_deref().map(seen_of).transpose()?,
        },
        protocol::FileOperation::Edit { path, find, replace } => {
            if find.is_empty() {
                return Err(bad("find", "is empty"));
            }
            FileOperation::Edit {
                path: path_of("path", &path)?,
                find,
                replace,
            }
        }
        protocol::FileOperation::Delete { path } => FileOperation::Delete {
            path: path_of("path", &path)?,
        },
        protocol::FileOperation::Rename { from, path } => FileOperation::Rename {
            from: path_of("from", &from)?,
            path: path_of("path", &path)?,
        },
        protocol::FileOperation::Symlink { path, target } => FileOperation::Symlink {
            path: path_of("path", &path)?,
            target,
        },
        protocol::FileOperation::Chmod { path, executable } => FileOperation::Chmod {
            path: path_of("path", &path)?,
            executable,
        },
    })
}

fn path_of(field: &'static str, text: &str) -> Result<RelPath, BadOperation> {
    text.parse().map_err(|bad| BadOperation::Path { field, bad })
}

fn content_of(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>, BadOperation> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => STANDARD
            .decode(base64)
            .map_err(|_| bad("base64", "is not Base64")),
        (None, None) => Err(bad("text", "is missing, and so is `base64`; give one of them")),
        (Some(_), Some(_)) => Err(bad("base64", "cannot be given together with `text`")),
    }
}

fn seen_of(hash: &str) -> Result<SeenFile, BadOperation> {
    match hash {
        "" => Ok(SeenFile::Nothing),
        hash => hash
            .parse()
            .map(SeenFile::File)
            .map_err(|_| bad("if_hash", "is not a hash, nor empty")),
    }
}

fn bad(field: &'static str, why: &'static str) -> BadOperation {
    BadOperation::Field { field, why }
}
