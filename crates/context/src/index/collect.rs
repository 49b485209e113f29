//! Collects extracted files until there are enough for a segment.

use std::io;
use std::path::Path;

use super::entry::FileEntry;
use super::extract::{Extracted, trigram_key};
use super::segment::{Segment, SegmentWriter};

/// How much all threads together collect before writing. The lists grow by doubling, and their old allocations aren't
/// reused, so it may be twice as much. With less, there would be more segments to merge.
const COLLECT_BYTES: usize = 8 * 1024 * 1024;
/// How many files are collected: their numbers have 16 bits.
const MOST_COLLECTED: usize = 1 << 16;

/// Files and their keys, in the order of their paths.
#[derive(Debug)]
pub(super) struct Collector {
    files: Vec<FileEntry>,
    /// By the first byte of a trigram: the other two in the upper bits, the number of the file in the lower ones.
    trigrams: Vec<Vec<u32>>,
    names: Vec<(u64, u16)>,
    /// The outlines, one after the other, and how long each is.
    outlines: Vec<u8>,
    outline_lengths: Vec<usize>,
    bytes: usize,
    most_bytes: usize,
}

impl Collector {
    pub(super) fn new(collectors: usize) -> Self {
        Self {
            files: Vec::new(),
            trigrams: vec![Vec::new(); 256],
            names: Vec::new(),
            outlines: Vec::new(),
            outline_lengths: Vec::new(),
            bytes: 0,
            most_bytes: COLLECT_BYTES / collectors.max(1),
        }
    }

    pub(super) fn add(&mut self, extracted: Extracted<'_>) {
        let file = self.files.len() as u16;
        for trigram in extracted.trigrams {
            self.trigrams[(trigram >> 16) as usize].push(trigram << 16 | u32::from(file));
        }
        self.names
            .extend(extracted.names.iter().map(|name| (*name, file)));
        self.outlines.extend_from_slice(&extracted.outline);
        self.outline_lengths.push(extracted.outline.len());
        self.bytes += 4 * extracted.trigrams.len() + 16 * extracted.names.len() + extracted.outline.len();
        self.files.push(extracted.entry);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes || self.files.len() == MOST_COLLECTED
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn write(&mut self, directory: &Path) -> io::Result<Segment> {
        let mut writer = SegmentWriter::new(directory, self.files.len())?;
        let mut rest = self.outlines.as_slice();
        for length in &self.outline_lengths {
            let (outline, after) = rest.split_at(*length);
            writer.outline(outline)?;
            rest = after;
        }
        let mut list = Vec::new();
        for (first, trigrams) in (0..).zip(&mut self.trigrams) {
            trigrams.sort_unstable();
            for same in trigrams.chunk_by(|one, other| one >> 16 == other >> 16) {
                list.clear();
                list.extend(same.iter().map(|number| number & 0xffff));
                writer.key(trigram_key(first << 16 | same[0] >> 16), &list)?;
            }
            trigrams.clear();
        }
        self.names.sort_unstable();
        for same in self.names.chunk_by(|(one, _), (other, _)| one == other) {
            list.clear();
            list.extend(same.iter().map(|(_, file)| u32::from(*file)));
            writer.key(same[0].0, &list)?;
        }
        let segment = writer.finish(directory, &self.files)?;
        self.names.clear();
        self.outlines.clear();
        self.outline_lengths.clear();
        self.files.clear();
        self.bytes = 0;
        Ok(segment)
    }
}
