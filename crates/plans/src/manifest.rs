//! A manifest: everything in a tree, by path.

mod coding;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use coding::BadManifest;

use crate::{Change, Entry, RelPath};

/// Everything in a tree: files, symlinks, and all directories, in path order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Manifest {
    pub(crate) entries: BTreeMap<RelPath, Entry>,
}

/// Names a manifest: the BLAKE3 hash of its encoding. Two trees with the same name are the same tree.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ManifestId(pub(crate) [u8; 32]);

impl Manifest {
    /// The manifest with these entries. Missing parent directories are added; entries below a file or a symlink
    /// are left out.
    pub fn from_entries(entries: impl IntoIterator<Item = (RelPath, Entry)>) -> Self {
        let given: BTreeMap<RelPath, Entry> = entries.into_iter().collect();
        let mut manifest = Self::default();
        for (path, entry) in given {
            manifest.put(path, entry);
        }
        manifest
    }

    #[must_use]
    pub fn id(&self) -> ManifestId {
        ManifestId(*blake3::hash(&self.encode()).as_bytes())
    }

    /// The changes that lead from this tree to another one, in path order. Reports no renames.
    #[must_use]
    pub fn changes_to(&self, other: &Self) -> Vec<Change> {
        let change = |path: &RelPath, before: Option<&Entry>, after: Option<&Entry>| Change {
            path: path.clone(),
            before: before.cloned(),
            after: after.cloned(),
            from: None,
        };
        let (mut old, mut new) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        let mut changes = Vec::new();
        loop {
            match (old.peek(), new.peek()) {
                (Some((was, before)), Some((is, after))) if was == is => {
                    if before != after {
                        changes.push(change(was, Some(before), Some(after)));
                    }
                    old.next();
                    new.next();
                }
                (Some((was, before)), next) if next.is_none_or(|(is, _)| was < is) => {
                    changes.push(change(was, Some(before), None));
                    old.next();
                }
                (_, Some((is, after))) => {
                    changes.push(change(is, None, Some(after)));
                    new.next();
                }
                (_, None) => return changes,
            }
        }
    }

    /// The tree after these changes. Ignores their `before`. The result is always a valid tree: a new file gets its
    /// parent directories, and nothing stays below something that is no longer a directory.
    #[must_use]
    pub fn with(&self, changes: &[Change]) -> Self {
        let mut manifest = self.clone();
        for change in changes {
            let gone = change.from.as_ref().into_iter();
            gone.chain(change.after.is_none().then_some(&change.path))
                .for_each(|path| manifest.remove(path));
        }
        for change in changes {
            if let Some(after) = &change.after {
                manifest.replace(change.path.clone(), after.clone());
            }
        }
        manifest
    }

    /// Adds an entry, unless one of its parents isn't a directory.
    fn put(&mut self, path: RelPath, entry: Entry) {
        for directory in path.ancestors() {
            if !self
                .entries
                .entry(directory)
                .or_insert(Entry::Directory)
                .is_directory()
            {
                return;
            }
        }
        self.entries.insert(path, entry);
    }

    /// Adds an entry, replacing whatever was there or in its way.
    fn replace(&mut self, path: RelPath, entry: Entry) {
        for directory in path.ancestors() {
            self.entries.insert(directory, Entry::Directory);
        }
        if !entry.is_directory() {
            self.remove(&path);
        }
        self.entries.insert(path, entry);
    }

    fn remove(&mut self, path: &RelPath) {
        if self
            .entries
            .remove(path)
            .is_some_and(|entry| entry.is_directory())
        {
            let below: Vec<RelPath> = self.below(path).map(|(path, _)| path.clone()).collect();
            for path in &below {
                self.entries.remove(path);
            }
        }
    }

    #[must_use]
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// All entries, in path order.
    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, &Entry)> {
        self.entries.iter()
    }

    /// All entries below a directory, in path order.
    pub fn below<'a>(&'a self, directory: &'a RelPath) -> impl Iterator<Item = (&'a RelPath, &'a Entry)> {
        // Paths are in byte order: between `a` and `a/b` there may be `a-b`, which isn't below `a`.
        let after = [directory.as_bytes(), b"/"].concat();
        self.entries
            .range(directory..)
            .skip_while(move |(path, _)| path.as_bytes() < after.as_slice())
            .take_while(move |(path, _)| path.is_below(directory))
    }

    /// The total size of its files, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.entries.values().map(|entry| match entry {
            Entry::File { size, .. } => *size,
            Entry::Symlink { .. } | Entry::Directory => 0,
        });
        sizes.sum()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl ManifestId {
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let blob: eventlog::BlobId = text.parse().ok()?;
        Some(Self(*blob.as_bytes()))
    }
}

impl fmt::Display for ManifestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ManifestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for ManifestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ManifestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for ManifestId {
    type Err = eventlog::BadBlobId;

    fn from_str(text: &str) -> Result<Self, eventlog::BadBlobId> {
        let hash: eventlog::BlobId = text.parse()?;
        Ok(Self(*hash.as_bytes()))
    }
}
