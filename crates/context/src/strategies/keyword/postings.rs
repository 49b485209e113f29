//! The interface that this strategy requires of an index.

use std::io;

use crate::index::{FileId, Key, Snapshot};
use crate::path::TreePath;

pub(in crate::strategies) trait Postings {
    /// All files in the index, in order.
    fn all(&self) -> Vec<FileId>;

    fn number(&self, path: &TreePath) -> Option<FileId>;

    fn place(&self, file: FileId) -> Option<&TreePath>;

    fn count(&self, key: Key) -> io::Result<usize>;

    /// Which files have a key, in order.
    fn with(&self, key: Key) -> io::Result<Vec<FileId>>;
}

impl Postings for Snapshot {
    fn all(&self) -> Vec<FileId> {
        self.files().collect()
    }

    fn number(&self, path: &TreePath) -> Option<FileId> {
        self.file(path)
    }

    fn place(&self, file: FileId) -> Option<&TreePath> {
        self.path(file)
    }

    fn count(&self, key: Key) -> io::Result<usize> {
        Self::count(self, key)
    }

    fn with(&self, key: Key) -> io::Result<Vec<FileId>> {
        Self::with(self, key)
    }
}

/// With this few files left, reading them is faster than another index lookup.
const FEW_FILES: usize = 8;

/// The files that may contain a text: a superset. `None` if the text is too short for the index.
pub(super) fn may_hold(index: &impl Postings, text: &str) -> io::Result<Option<Vec<FileId>>> {
    let mut keys: Vec<Key> = Vec::new();
    for three in text.as_bytes().windows(3) {
        let key = Key::trigram([three[0], three[1], three[2]]);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return Ok(None);
    }
    let mut counted = Vec::new();
    for key in keys {
        counted.push((index.count(key)?, key));
    }
    // The rarest first, so that the intersection is small from the beginning.
    counted.sort_unstable();
    let mut left: Option<Vec<FileId>> = None;
    for (count, key) in counted {
        match &mut left {
            _ if count == 0 => return Ok(Some(Vec::new())),
            None => left = Some(index.with(key)?),
            Some(files) if files.len() <= FEW_FILES => break,
            Some(files) => keep_common(files, &index.with(key)?),
        }
    }
    Ok(left)
}

/// The files that define or mention a name, or define one with this word in it.
pub(super) fn may_name(index: &impl Postings, text: &str) -> io::Result<Vec<FileId>> {
    let mut files = Vec::new();
    for key in [Key::defined(text), Key::mentioned(text), Key::part(text)] {
        files.extend(index.with(key)?);
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Keeps the files that are in both lists. Both are in order.
fn keep_common(files: &mut Vec<FileId>, others: &[FileId]) {
    let mut rest = others;
    files.retain(|file| {
        let skipped = rest.partition_point(|other| other < file);
        rest = &rest[skipped..];
        rest.first() == Some(file)
    });
}
