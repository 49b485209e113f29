//! A recently changed file: a segment of one file, in memory.

use super::entry::FileEntry;
use super::extract::{Extracted, keys};

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) entry: FileEntry,
    /// In order, each once.
    pub(super) keys: Vec<u64>,
    /// Encoded; empty if there is none.
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
