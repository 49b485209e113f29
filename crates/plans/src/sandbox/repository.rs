//! The user's repository: where its parts are. Reads files only and never runs git.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum size of a file that points to another path. Git writes one line.
const POINTER_LIMIT_BYTES: usize = 64 * 1024;

/// A repository, seen from one of its work trees.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Repository {
    /// What belongs to this work tree: its HEAD, its index.
    pub(super) own: PathBuf,
    /// What all work trees share: branches, objects, configuration. The same directory as `own`, unless this is a
    /// linked work tree.
    pub(super) common: PathBuf,
}

impl Repository {
    /// The repository of a work tree, if the directory is one. A submodule and a linked work tree have a file that
    /// points to the rest.
    pub(super) fn of(workspace: &Path) -> io::Result<Option<Self>> {
        let dot_git = workspace.join(".git");
        let own = match fs::metadata(&dot_git) {
            Ok(found) if found.is_dir() => dot_git,
            Ok(_) => match pointer(&dot_git, b"gitdir:")? {
                Some(target) => workspace.join(target),
                None => return Ok(None),
            },
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Git, too, ignores a directory with that name that has no HEAD.
        let own = match fs::canonicalize(&own) {
            Ok(own) if own.join("HEAD").symlink_metadata().is_ok() => own,
            Ok(_) => return Ok(None),
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let common = match pointer(&own.join("commondir"), b"")? {
            Some(target) => fs::canonicalize(own.join(target))?,
            None => own.clone(),
        };
        Ok(Some(Self { own, common }))
    }

    /// Whether its branches are in a reftable instead of files.
    pub(super) fn has_reftable(&self) -> bool {
        self.common.join("reftable").is_dir()
    }

    /// A directory of the repository that may belong to the work tree or be shared, if it exists.
    pub(super) fn part(&self, name: &str) -> Option<PathBuf> {
        [&self.own, &self.common]
            .into_iter()
            .map(|directory| directory.join(name))
            .find(|part| part.is_dir())
    }

    /// The commit that HEAD points to, if any.
    pub(super) fn head(&self) -> io::Result<Option<String>> {
        let Some(head) = read_small(&self.own.join("HEAD"))? else {
            return Ok(None);
        };
        let Some(name) = head.strip_prefix(b"ref:") else {
            return Ok(as_commit(&head));
        };
        let name = name.trim_ascii();
        let loose = Path::new(std::ffi::OsStr::from_bytes(name));
        if let Some(content) = read_small(&self.common.join(loose))? {
            return Ok(as_commit(&content));
        }
        let packed = match fs::read(self.common.join("packed-refs")) {
            Ok(packed) => packed,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = packed.split(|byte| *byte == b'\n').find_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            (line[space + 1..] == *name).then(|| as_commit(&line[..space]))?
        });
        Ok(found)
    }
}

pub(super) fn as_commit(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (matches!(text.len(), 40 | 64) && is_hex).then(|| text.to_owned())
}

/// The path that follows a prefix in a file.
fn pointer(file: &Path, word: &[u8]) -> io::Result<Option<PathBuf>> {
    let Some(content) = read_small(file)? else {
        return Ok(None);
    };
    let Some(target) = content.strip_prefix(word) else {
        return Ok(None);
    };
    let target = target.strip_suffix(b"\n").unwrap_or(target).trim_ascii_start();
    Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(target))))
}

fn read_small(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Ok(content) if content.len() <= POINTER_LIMIT_BYTES => Ok(Some(content)),
        Ok(_) => Ok(None),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}
