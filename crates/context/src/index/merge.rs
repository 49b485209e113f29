//! Merges several parts into one segment, without files that no longer count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::Path;

use kernel::Scope;

use super::entry::FileEntry;
use super::part::{Content, Part};
use super::segment::{KeyCursor, Segment, SegmentWriter};

/// How many keys are merged between two checks of the scope.
const KEYS_PER_LOOK: usize = 4096;
/// The number of a file that is left out.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Merged {
    pub(super) inputs: Vec<Part>,
    /// `None` if no file of the parts counts.
    pub(super) segment: Option<Segment>,
    /// For each part, the new number of each file.
    moved: Vec<Vec<u32>>,
}

impl Merged {
    /// The new number of a file of one of the parts; `None` if it was left out.
    pub(super) fn moved(&self, input: usize, file: u32) -> Option<u32> {
        let to = *self.moved.get(input)?.get(file as usize)?;
        (to != NOWHERE).then_some(to)
    }
}

/// Merges parts.
///
/// # Errors
/// A part can't be read, the segment can't be written, or the scope is cancelled.
pub(super) fn merge(inputs: Vec<Part>, directory: &Path, scope: &Scope) -> io::Result<Merged> {
    let (files, moved) = order(&inputs);
    if files.is_empty() {
        let segment = None;
        return Ok(Merged {
            inputs,
            segment,
            moved,
        });
    }
    let mut writer = SegmentWriter::new(directory, files.len())?;
    for (_, input, file) in &files {
        writer.outline(&inputs[*input].content.outline(*file)?)?;
    }
    write_keys(&inputs, &moved, &mut writer, scope)?;
    let entries: Vec<FileEntry> = files.into_iter().map(|(entry, ..)| entry.clone()).collect();
    let segment = Some(writer.finish(directory, &entries)?);
    Ok(Merged {
        inputs,
        segment,
        moved,
    })
}

type InOrder<'parts> = Vec<(&'parts FileEntry, usize, u32)>;

fn order(inputs: &[Part]) -> (InOrder<'_>, Vec<Vec<u32>>) {
    let mut moved: Vec<Vec<u32>> = Vec::new();
    let mut files: InOrder<'_> = Vec::new();
    for (input, part) in inputs.iter().enumerate() {
        moved.push(vec![NOWHERE; part.content.entries().len()]);
        files.extend(part.living().map(|(file, entry)| (entry, input, file)));
    }
    files.sort_unstable_by(|one, other| one.0.path.cmp(&other.0.path));
    for (place, (_, input, file)) in (0..).zip(&files) {
        moved[*input][*file as usize] = place;
    }
    (files, moved)
}

fn write_keys(
    inputs: &[Part],
    moved: &[Vec<u32>],
    writer: &mut SegmentWriter,
    scope: &Scope,
) -> io::Result<()> {
    let mut sources: Vec<Source<'_>> = inputs.iter().map(|part| Source::new(&part.content)).collect();
    let mut next = BinaryHeap::new();
    for (input, source) in sources.iter_mut().enumerate() {
        if let Some(key) = source.advance()? {
            next.push(Reverse((key, input)));
        }
    }
    let mut list = Vec::new();
    let mut until_look = KEYS_PER_LOOK;
    while let Some(Reverse((key, _))) = next.peek().copied() {
        list.clear();
        while let Some(mut top) = next.peek_mut()
            && top.0.0 == key
        {
            let input = top.0.1;
            let to = &moved[input];
            let source = &mut sources[input];
            let files = source.list.iter().map(|file| to[*file as usize]);
            list.extend(files.filter(|file| *file != NOWHERE));
            match source.advance()? {
                Some(after) => top.0.0 = after,
                None => drop(std::collections::binary_heap::PeekMut::pop(top)),
            }
        }
        if !list.is_sorted() {
            list.sort_unstable();
        }
        if !list.is_empty() {
            writer.key(key, &list)?;
        }
        until_look -= 1;
        if until_look == 0 {
            until_look = KEYS_PER_LOOK;
            if scope.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }
    Ok(())
}

/// The keys of one part, in order.
struct Source<'part> {
    keys: Keys<'part>,
    list: Vec<u32>,
}

enum Keys<'part> {
    Segment(KeyCursor<'part>),
    Piece(std::slice::Iter<'part, u64>),
}

impl<'part> Source<'part> {
    fn new(content: &'part Content) -> Self {
        let keys = match content {
            Content::Segment(segment) => Keys::Segment(KeyCursor::new(segment)),
            Content::Piece(piece) => Keys::Piece(piece.keys.iter()),
        };
        Self {
            keys,
            list: Vec::new(),
        }
    }

    fn advance(&mut self) -> io::Result<Option<u64>> {
        self.list.clear();
        match &mut self.keys {
            Keys::Segment(cursor) => cursor.next(&mut self.list),
            Keys::Piece(keys) => {
                self.list.push(0);
                Ok(keys.next().copied())
            }
        }
    }
}
