//! An index at one point in time.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::entry::{FileEntry, Holds};
use super::key::Key;
use super::part::Part;
use super::record;
use crate::outline::Outline;
use crate::path::TreePath;

/// A file of a snapshot. Its number is meaningless in another snapshot.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId(pub u32);

/// An index at one point in time. It doesn't change as long as somebody holds it. Reading it blocks briefly.
#[derive(Debug, Default)]
pub struct Snapshot {
    parts: Vec<Part>,
    /// The number of the first file of each part.
    first: Vec<u32>,
    /// Files that are known to have changed, or that don't fit.
    beside: Arc<[TreePath]>,
    gone: Arc<Vec<(TreePath, SystemTime)>>,
}

impl Snapshot {
    pub(super) fn new(
        parts: Vec<Part>,
        beside: Arc<[TreePath]>,
        gone: Arc<Vec<(TreePath, SystemTime)>>,
    ) -> Self {
        let mut next = 0;
        let first = parts
            .iter()
            .map(|part| {
                let first = next;
                next += part.content.entries().len() as u32;
                first
            })
            .collect();
        Self {
            parts,
            first,
            beside,
            gone,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.texts).sum()
    }

    /// Whether there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.source_bytes).sum()
    }

    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        let segments = self.parts.iter().filter_map(|part| part.content.segment());
        segments.map(super::segment::Segment::bytes).sum()
    }

    #[must_use]
    pub fn path(&self, file: FileId) -> Option<&TreePath> {
        self.entry(file).map(|entry| &entry.path)
    }

    #[must_use]
    pub fn file(&self, path: &TreePath) -> Option<FileId> {
        let mut parts = self.first.iter().zip(&self.parts);
        parts.find_map(|(first, part)| {
            let file = part.find(path.as_str())?;
            is_text(part, file).then_some(FileId(first + file))
        })
    }

    /// All files, in the order of their numbers.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        let parts = self.first.iter().zip(&self.parts);
        parts.flat_map(|(first, part)| {
            let texts = part.living().filter(|(_, entry)| entry.holds == Holds::Text);
            texts.map(move |(file, _)| FileId(first + file))
        })
    }

    /// The size of a file in bytes.
    #[must_use]
    pub fn bytes(&self, file: FileId) -> u64 {
        self.entry(file).map_or(0, |entry| entry.stamp.size)
    }

    /// How many files have a key, or slightly more. Cheap.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn count(&self, key: Key) -> io::Result<usize> {
        self.parts
            .iter()
            .map(|part| part.content.count(key.number()))
            .sum()
    }

    /// Which files have a key, in the order of their numbers.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn with(&self, key: Key) -> io::Result<Vec<FileId>> {
        let mut found = Vec::new();
        let mut list = Vec::new();
        for (first, part) in self.first.iter().zip(&self.parts) {
            list.clear();
            part.content.with(key.number(), &mut list)?;
            let living = list.iter().filter(|file| part.is_alive(**file));
            found.extend(living.map(|file| FileId(first + file)));
        }
        Ok(found)
    }

    /// The outline of a file from when it was indexed.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn outline(&self, file: FileId) -> io::Result<Option<Outline>> {
        let Some((part, file)) = self.place(file) else {
            return Ok(None);
        };
        let bytes = part.content.outline(file)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "an outline in the index is broken");
        record::decode(&bytes).map(Some).ok_or_else(broken)
    }

    /// Files that changed on disk after the snapshot, in order: those that are known to have changed and aren't in the
    /// index yet, and, if a time is given, those that changed or were deleted after it.
    #[must_use]
    pub fn changed_since(&self, time: Option<SystemTime>) -> Vec<TreePath> {
        let mut changed = self.beside.to_vec();
        if let Some(time) = time {
            let entries = self.parts.iter().flat_map(Part::living);
            let since = entries.filter(|(_, entry)| entry.stamp.is_since(time));
            changed.extend(since.map(|(_, entry)| entry.path.clone()));
            let gone = self.gone.iter().filter(|(_, noticed)| *noticed >= time);
            changed.extend(gone.map(|(path, _)| path.clone()));
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn place(&self, file: FileId) -> Option<(&Part, u32)> {
        let place = self
            .first
            .partition_point(|first| *first <= file.0)
            .checked_sub(1)?;
        let (part, file) = (&self.parts[place], file.0 - self.first[place]);
        (part.is_alive(file) && is_text(part, file)).then_some((part, file))
    }

    fn entry(&self, file: FileId) -> Option<&FileEntry> {
        let (part, file) = self.place(file)?;
        part.content.entries().get(file as usize)
    }
}

fn is_text(part: &Part, file: u32) -> bool {
    let entry = part.content.entries().get(file as usize);
    entry.is_some_and(|entry| entry.holds == Holds::Text)
}
