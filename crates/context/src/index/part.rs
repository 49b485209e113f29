//! A part of an index: a segment on disk or a piece in memory, and which of its files still count.

use std::io;
use std::slice;
use std::sync::Arc;

use super::entry::{FileEntry, Holds};
use super::extract::{Extracted, keys};
use super::segment::Segment;

#[derive(Debug)]
pub(super) enum Content {
    Segment(Segment),
    Piece(Piece),
}

impl Content {
    /// The files, ordered by path, which is the order of their numbers.
    pub(super) fn entries(&self) -> &[FileEntry] {
        match self {
            Self::Segment(segment) => segment.entries(),
            Self::Piece(piece) => slice::from_ref(&piece.entry),
        }
    }

    pub(super) fn count(&self, key: u64) -> io::Result<usize> {
        match self {
            Self::Segment(segment) => segment.count(key),
            Self::Piece(piece) => Ok(usize::from(piece.keys.binary_search(&key).is_ok())),
        }
    }

    /// Appends the numbers of the files that have a key, in order.
    pub(super) fn with(&self, key: u64, list: &mut Vec<u32>) -> io::Result<()> {
        match self {
            Self::Segment(segment) => segment.with(key, list),
            Self::Piece(piece) => {
                list.extend(piece.keys.binary_search(&key).is_ok().then_some(0));
                Ok(())
            }
        }
    }

    /// The encoded outline of a file; empty if the file has no outline.
    pub(super) fn outline(&self, file: u32) -> io::Result<Vec<u8>> {
        match self {
            Self::Segment(segment) => segment.outline(file),
            Self::Piece(piece) => Ok(piece.outline.clone()),
        }
    }

    pub(super) fn find(&self, path: &str) -> Option<u32> {
        let entries = self.entries();
        let place = entries.binary_search_by(|entry| entry.path.as_str().cmp(path));
        place.ok().map(|place| place as u32)
    }

    pub(super) fn segment(&self) -> Option<&Segment> {
        match self {
            Self::Segment(segment) => Some(segment),
            Self::Piece(_) => None,
        }
    }
}

/// A part of an index. Clones share everything until one of them is changed.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) content: Arc<Content>,
    /// A bit for each file that no longer counts.
    dead: Arc<Vec<u64>>,
    /// How many files with text count, and their size.
    pub(super) texts: usize,
    pub(super) source_bytes: u64,
    pub(super) alive: usize,
}

impl Part {
    pub(super) fn new(content: Content) -> Self {
        let entries = content.entries();
        let texts = entries.iter().filter(|entry| entry.holds == Holds::Text);
        Self {
            dead: Arc::new(vec![0; entries.len().div_ceil(64)]),
            texts: texts.clone().count(),
            source_bytes: texts.map(|entry| entry.stamp.size).sum(),
            alive: entries.len(),
            content: Arc::new(content),
        }
    }

    pub(super) fn is_alive(&self, file: u32) -> bool {
        let word = self.dead.get(file as usize / 64);
        word.is_some_and(|word| word & (1 << (file % 64)) == 0)
    }

    pub(super) fn kill(&mut self, file: u32) {
        if !self.is_alive(file) {
            return;
        }
        let Some(entry) = self.content.entries().get(file as usize) else {
            return;
        };
        if entry.holds == Holds::Text {
            self.texts -= 1;
            self.source_bytes -= entry.stamp.size;
        }
        self.alive -= 1;
        Arc::make_mut(&mut self.dead)[file as usize / 64] |= 1 << (file % 64);
    }

    pub(super) fn living(&self) -> impl Iterator<Item = (u32, &FileEntry)> {
        (0..)
            .zip(self.content.entries())
            .filter(|(file, _)| self.is_alive(*file))
    }

    /// The number of a file that counts.
    pub(super) fn find(&self, path: &str) -> Option<u32> {
        self.content.find(path).filter(|file| self.is_alive(*file))
    }
}

/// A recently changed file: a segment of one file, in memory.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) entry: FileEntry,
    /// In order, each once.
    pub(super) keys: Vec<u64>,
    /// Encoded; empty if the file has no outline.
    pub(super) outline: Vec<u8>,
}

impl Piece {
    pub(super) fn new(extracted: Extracted<'_>) -> Self {
        Self {
            keys: keys(&extracted),
            entry: extracted.entry,
            outline: extracted.outline,
        }
    }
}
