//! Opens and reads a segment.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::layout::{Block, END_BYTES, End, KEYS_PER_BLOCK, MAGIC, take_list};
use crate::index::entry::FileEntry;
use crate::index::numbers::Front;

/// How much is read at once to check a segment.
const CHECK_BYTES: usize = 1024 * 1024;
/// The longest block that is read. A longer one is corrupt: a block has 128 lists, and a list is shorter than a bit for
/// each of the files that an index may have.
const BLOCK_LIMIT_BYTES: u32 = 64 * 1024 * 1024;

/// A segment. Its tables are in memory.
#[derive(Debug)]
pub(in crate::index) struct Segment {
    file: File,
    name: String,
    bytes: u64,
    entries: Vec<FileEntry>,
    /// Where the outline of each file begins, and where the last one ends.
    outlines: Vec<u64>,
    blocks: Vec<Block>,
}

struct KeyHit {
    count: usize,
    list: List,
}

enum List {
    One(u32),
    Stored { offset: u64, bytes: u32 },
}

impl Segment {
    /// Opens a segment, and verifies all of it.
    ///
    /// # Errors
    /// It can't be read, or is corrupt.
    pub(in crate::index) fn open(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        check(&mut File::open(&path)?)?;
        Self::open_unchecked(&path, name.to_owned())
    }

    pub(super) fn open_unchecked(path: &Path, name: String) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let tail = bytes.checked_sub(END_BYTES as u64).ok_or_else(broken)?;
        let end = read(&file, tail, END_BYTES)?;
        let end = End::take(&mut Front(&end), bytes).ok_or_else(broken)?;
        let table = read(&file, end.files_at, (end.table_at - end.files_at) as usize)?;
        let (entries, outlines) = take_entries(&table, &end).ok_or_else(broken)?;
        let table = read(&file, end.table_at, (tail - end.table_at) as usize)?;
        let blocks = take_blocks(&table, &end).ok_or_else(broken)?;
        Ok(Self {
            file,
            name,
            bytes,
            entries,
            outlines,
            blocks,
        })
    }

    pub(in crate::index) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::index) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its files, in the order of their paths, which is the order of their numbers.
    pub(in crate::index) fn entries(&self) -> &[FileEntry] {
        &self.entries
    }

    pub(in crate::index) fn count(&self, key: u64) -> io::Result<usize> {
        Ok(self.find(key)?.map_or(0, |found| found.count))
    }

    /// Appends the numbers of the files that have a key, in order.
    pub(in crate::index) fn with(&self, key: u64, list: &mut Vec<u32>) -> io::Result<()> {
        let Some(found) = self.find(key)? else {
            return Ok(());
        };
        match found.list {
            List::One(only) => list.push(only),
            List::Stored { offset, bytes } => {
                let bytes = read(&self.file, offset, bytes as usize)?;
                take_list(&bytes, found.count, self.entries.len(), list).ok_or_else(broken)?;
            }
        }
        Ok(())
    }

    /// The outline of a file, encoded; empty if it has no outline.
    pub(in crate::index) fn outline(&self, file: u32) -> io::Result<Vec<u8>> {
        match self.outlines.get(file as usize..=file as usize + 1) {
            Some(&[from, to]) if from < to => read(&self.file, from, (to - from) as usize),
            _ => Ok(Vec::new()),
        }
    }

    fn find(&self, key: u64) -> io::Result<Option<KeyHit>> {
        let after = self.blocks.partition_point(|block| block.first <= key);
        let Some(block) = after.checked_sub(1).map(|place| self.blocks[place]) else {
            return Ok(None);
        };
        let keys = read(
            &self.file,
            block.offset + u64::from(block.lists),
            block.keys as usize,
        )?;
        let mut rows = Rows::new(&keys, &block, self.entries.len());
        while let Some((found, count, list)) = rows.next().ok_or_else(broken)? {
            if found >= key {
                return Ok((found == key).then_some(KeyHit { count, list }));
            }
        }
        Ok(None)
    }
}

/// The keys of a block, one after the other.
struct Rows<'keys> {
    front: Front<'keys>,
    key: u64,
    /// Where the next list begins, and where all of them end.
    at: u64,
    end: u64,
    files: usize,
}

impl<'keys> Rows<'keys> {
    fn new(keys: &'keys [u8], block: &Block, files: usize) -> Self {
        Self {
            front: Front(keys),
            key: block.first,
            at: block.offset,
            end: block.offset + u64::from(block.lists),
            files,
        }
    }

    /// The next key, its count and its list; `Some(None)` at the end, and `None` if the data is invalid.
    fn next(&mut self) -> Option<Option<(u64, usize, List)>> {
        if self.front.is_empty() {
            return Some(None);
        }
        self.key = self.key.checked_add(self.front.number()?)?;
        let count = self.front.length()?;
        let rest = self.front.small()?;
        let list = match count {
            0 => return None,
            1 if (rest as usize) < self.files => List::One(rest),
            1 => return None,
            count if count > self.files => return None,
            _ => {
                let offset = self.at;
                self.at = offset
                    .checked_add(rest.into())
                    .filter(|after| *after <= self.end)?;
                List::Stored { offset, bytes: rest }
            }
        };
        Some(Some((self.key, count, list)))
    }
}

/// All keys of a segment, in order, with a block in memory at a time.
#[derive(Debug)]
pub(in crate::index) struct KeyCursor<'segment> {
    segment: &'segment Segment,
    next_block: usize,
    /// The lists of the block, one after the other.
    bytes: Vec<u8>,
    /// The keys of the block: each with the number of its files, and the end of its list.
    rows: Vec<(u64, usize, ListIn)>,
    next_row: usize,
}

#[derive(Clone, Copy, Debug)]
enum ListIn {
    One(u32),
    Bytes { from: usize, to: usize },
}

impl<'segment> KeyCursor<'segment> {
    pub(in crate::index) fn new(segment: &'segment Segment) -> Self {
        Self {
            segment,
            next_block: 0,
            bytes: Vec::new(),
            rows: Vec::with_capacity(KEYS_PER_BLOCK),
            next_row: 0,
        }
    }

    /// Advances to the next key, and appends the numbers of its files to a list.
    pub(in crate::index) fn next(&mut self, list: &mut Vec<u32>) -> io::Result<Option<u64>> {
        if self.next_row == self.rows.len() && !self.read_block()? {
            return Ok(None);
        }
        let (key, count, place) = self.rows[self.next_row];
        self.next_row += 1;
        match place {
            ListIn::One(only) => list.push(only),
            ListIn::Bytes { from, to } => {
                let bytes = self.bytes.get(from..to).ok_or_else(broken)?;
                take_list(bytes, count, self.segment.entries.len(), list).ok_or_else(broken)?;
            }
        }
        Ok(Some(key))
    }

    fn read_block(&mut self) -> io::Result<bool> {
        let Some(block) = self.segment.blocks.get(self.next_block) else {
            return Ok(false);
        };
        self.next_block += 1;
        self.next_row = 0;
        self.rows.clear();
        let length = block.lists as usize + block.keys as usize;
        self.bytes.resize(length, 0);
        self.segment.file.read_exact_at(&mut self.bytes, block.offset)?;
        let keys = &self.bytes[block.lists as usize..];
        let mut rows = Rows::new(keys, block, self.segment.entries.len());
        while let Some((key, count, list)) = rows.next().ok_or_else(broken)? {
            let place = match list {
                List::One(only) => ListIn::One(only),
                List::Stored { offset, bytes } => {
                    let from = (offset - block.offset) as usize;
                    ListIn::Bytes {
                        from,
                        to: from + bytes as usize,
                    }
                }
            };
            self.rows.push((key, count, place));
        }
        // A block without keys is invalid.
        if self.rows.is_empty() {
            Err(broken())
        } else {
            Ok(true)
        }
    }
}

fn check(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut left = length
        .checked_sub(32)
        .filter(|left| *left >= MAGIC.len() as u64)
        .ok_or_else(broken)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHECK_BYTES];
    let mut is_first = true;
    while left > 0 {
        let most = buffer.len().min(left.try_into().unwrap_or(usize::MAX));
        file.read_exact(&mut buffer[..most])?;
        if std::mem::take(&mut is_first) && buffer[..most].get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(broken());
        }
        hasher.update(&buffer[..most]);
        left -= most as u64;
    }
    let mut hash = [0; 32];
    file.read_exact(&mut hash)?;
    if hasher.finalize() == hash {
        Ok(())
    } else {
        Err(broken())
    }
}

fn take_entries(table: &[u8], end: &End) -> Option<(Vec<FileEntry>, Vec<u64>)> {
    let mut front = Front(table);
    let mut entries: Vec<FileEntry> = Vec::with_capacity(end.files as usize);
    let mut outlines = Vec::with_capacity(end.files as usize + 1);
    let mut at = MAGIC.len() as u64;
    for _ in 0..end.files {
        let before = entries.last().map_or("", |entry| entry.path.as_str());
        let entry = FileEntry::take(&mut front, before)?;
        if !entries.is_empty() && before >= entry.path.as_str() {
            return None;
        }
        entries.push(entry);
        outlines.push(at);
        at = at.checked_add(front.small()?.into())?;
    }
    outlines.push(at);
    (front.is_empty() && at == end.blocks_at).then_some((entries, outlines))
}

fn take_blocks(table: &[u8], end: &End) -> Option<Vec<Block>> {
    let mut front = Front(table);
    let mut blocks: Vec<Block> = Vec::with_capacity(end.blocks as usize);
    let mut at = end.blocks_at;
    for _ in 0..end.blocks {
        let block = Block::take(&mut front)?;
        let in_order = blocks.last().is_none_or(|last| last.first < block.first);
        let length = block
            .lists
            .checked_add(block.keys)
            .filter(|length| *length <= BLOCK_LIMIT_BYTES)?;
        if !in_order || block.offset != at {
            return None;
        }
        at = at.checked_add(length.into())?;
        blocks.push(block);
    }
    (at == end.files_at).then_some(blocks)
}

fn read(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a segment of an index is broken")
}
