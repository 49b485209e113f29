//! Extracts the keys and the outline of a file from its text.

use std::time::SystemTime;

use kernel::Scope;

use super::entry::{FileEntry, Holds, Stamp};
use super::key::Key;
use super::record;
use crate::disk::Root;
use crate::outline::outline;
use crate::path::TreePath;
use crate::query::parts_of;
use crate::view::{NotText, text_of};

const TRIGRAMS: usize = 1 << 24;

/// Reads files and extracts their keys. Each thread has one, because it keeps a bit for each possible trigram.
#[derive(Debug)]
pub(super) struct Extractor {
    /// The trigrams of the text. All clear between two texts.
    has: Vec<u64>,
    /// The same as a list, in the order of the text.
    trigrams: Vec<u32>,
    names: Vec<u64>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Extracted<'from> {
    pub(super) entry: FileEntry,
    /// Each once, in any order.
    pub(super) trigrams: &'from [u32],
    /// Keys of names, in order, each once.
    pub(super) names: &'from [u64],
    /// The encoded outline; empty if the file has no outline.
    pub(super) outline: Vec<u8>,
}

impl Extractor {
    pub(super) fn new() -> Self {
        Self {
            has: vec![0; TRIGRAMS / 64],
            trigrams: Vec::new(),
            names: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Extracts a file; `None` if it no longer exists, or is too large.
    pub(super) fn extract(&mut self, root: &Root, path: &TreePath, scope: &Scope) -> Option<Extracted<'_>> {
        let now = SystemTime::now();
        self.clear();
        let mut encoded = Vec::new();
        let (stamp, holds) = match root.read(path, &mut self.buffer) {
            Ok(stat) => {
                let buffer = std::mem::take(&mut self.buffer);
                // The same text that a reader sees.
                let text = text_of(&buffer);
                self.note_trigrams(text.as_bytes());
                encoded = self.note_names(path, &text, scope);
                drop(text);
                self.buffer = buffer;
                (Stamp::of_stat(&stat), Holds::Text)
            }
            Err(NotText::Binary | NotText::Unreadable(_)) => {
                let metadata = root.stat(path)?;
                (Stamp::of_stat(&metadata), Holds::Nothing)
            }
            Err(NotText::Missing | NotText::TooLarge) => return None,
        };
        Some(Extracted {
            entry: FileEntry {
                path: path.clone(),
                stamp: stamp.read_at(now),
                holds,
            },
            trigrams: &self.trigrams,
            names: &self.names,
            outline: encoded,
        })
    }

    fn note_trigrams(&mut self, text: &[u8]) {
        for line in memchr_lines(text) {
            let [first, second, rest @ ..] = line else {
                continue;
            };
            let mut trigram =
                u32::from(first.to_ascii_lowercase()) << 8 | u32::from(second.to_ascii_lowercase());
            for byte in rest {
                trigram = (trigram << 8 | u32::from(byte.to_ascii_lowercase())) & 0x00ff_ffff;
                let (word, bit) = ((trigram / 64) as usize, 1 << (trigram % 64));
                if self.has[word] & bit == 0 {
                    self.has[word] |= bit;
                    self.trigrams.push(trigram);
                }
            }
        }
    }

    fn note_names(&mut self, path: &TreePath, text: &str, scope: &Scope) -> Vec<u8> {
        let Some(outline) = outline(path, text, scope) else {
            return Vec::new();
        };
        for definition in &outline.definitions {
            self.names.push(Key::defined(&definition.name).number());
            let parts = parts_of(&definition.name);
            self.names
                .extend(parts.iter().map(|part| Key::part(part).number()));
        }
        let references = outline.references.iter();
        self.names
            .extend(references.map(|reference| Key::mentioned(&reference.name).number()));
        self.names.sort_unstable();
        self.names.dedup();
        record::encode(&outline)
    }

    fn clear(&mut self) {
        for trigram in self.trigrams.drain(..) {
            self.has[(trigram / 64) as usize] = 0;
        }
        self.names.clear();
    }
}

fn memchr_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', text).chain(std::iter::once(text.len()));
    ends.map(move |end| {
        let line = &text[from..end];
        from = end + 1;
        line
    })
}

/// All keys of a file, in order.
pub(super) fn keys(extracted: &Extracted<'_>) -> Vec<u64> {
    let trigrams = extracted.trigrams.iter().map(|trigram| trigram_key(*trigram));
    let mut keys: Vec<u64> = trigrams.chain(extracted.names.iter().copied()).collect();
    keys.sort_unstable();
    keys
}

pub(super) fn trigram_key(trigram: u32) -> u64 {
    let [_, one, two, three] = trigram.to_be_bytes();
    Key::trigram([one, two, three]).number()
}
