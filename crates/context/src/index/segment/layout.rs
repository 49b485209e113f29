//! The layout of a segment, shared by reading and writing.

use crate::index::numbers::{Front, put};

/// The first bytes of a segment. The last of them is the format: a segment in another format is rebuilt.
pub(super) const MAGIC: [u8; 8] = *b"tidectx\x01";
/// How many keys are in a block.
pub(super) const KEYS_PER_BLOCK: usize = 128;
/// The length of the end: five numbers and a hash.
pub(super) const END_BYTES: usize = 5 * 8 + 32;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Block {
    pub(super) first: u64,
    pub(super) offset: u64,
    pub(super) lists: u32,
    /// The length of its keys, which come after the lists.
    pub(super) keys: u32,
}

/// The length of a block's row in the table.
pub(super) const BLOCK_BYTES: usize = 24;

impl Block {
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes.extend_from_slice(&self.lists.to_le_bytes());
        bytes.extend_from_slice(&self.keys.to_le_bytes());
    }

    pub(super) fn take(front: &mut Front<'_>) -> Option<Self> {
        Some(Self {
            first: u64::from_le_bytes(front.array()?),
            offset: u64::from_le_bytes(front.array()?),
            lists: u32::from_le_bytes(front.array()?),
            keys: u32::from_le_bytes(front.array()?),
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct End {
    /// Where the blocks begin, and therefore where the outlines end.
    pub(super) blocks_at: u64,
    pub(super) files_at: u64,
    pub(super) files: u64,
    /// Where the table of blocks begins.
    pub(super) table_at: u64,
    pub(super) blocks: u64,
}

impl End {
    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        for number in [
            self.blocks_at,
            self.files_at,
            self.files,
            self.table_at,
            self.blocks,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Parses the end of a file of this length; `None` if it is invalid.
    pub(super) fn take(front: &mut Front<'_>, length: u64) -> Option<Self> {
        let mut number = || Some(u64::from_le_bytes(front.array()?));
        let end = Self {
            blocks_at: number()?,
            files_at: number()?,
            files: number()?,
            table_at: number()?,
            blocks: number()?,
        };
        let parts = [
            MAGIC.len() as u64,
            end.blocks_at,
            end.files_at,
            end.table_at,
            length.checked_sub(END_BYTES as u64)?,
        ];
        let table = end.blocks.checked_mul(BLOCK_BYTES as u64)?;
        let fits = parts.is_sorted() && parts[4] - parts[3] == table && end.files <= parts[3] - parts[2];
        (fits && u32::try_from(end.files).is_ok()).then_some(end)
    }
}

pub(super) fn is_dense(count: usize, files: usize) -> bool {
    count > 1 && count > files / 8
}

/// Appends the numbers of the files that have a key. There are at least two, in order.
pub(super) fn put_list(bytes: &mut Vec<u8>, list: &[u32], files: usize) {
    if is_dense(list.len(), files) {
        let from = bytes.len();
        bytes.resize(from + files.div_ceil(8), 0);
        for number in list {
            bytes[from + *number as usize / 8] |= 1 << (number % 8);
        }
    } else {
        let mut before = 0;
        for number in list {
            put(bytes, u64::from(number - before));
            before = *number;
        }
    }
}

/// Decodes such a list, and appends it. `None` if it is invalid.
pub(super) fn take_list(bytes: &[u8], count: usize, files: usize, list: &mut Vec<u32>) -> Option<()> {
    let from = list.len();
    if is_dense(count, files) {
        if bytes.len() != files.div_ceil(8) {
            return None;
        }
        for (place, byte) in (0..).step_by(8).zip(bytes) {
            let mut bits = *byte;
            while bits != 0 {
                list.push(place + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    } else {
        let mut front = Front(bytes);
        let mut last: u32 = 0;
        for place in 0..count {
            let difference = front.small()?;
            if place > 0 && difference == 0 {
                return None;
            }
            last = last.checked_add(difference)?;
            list.push(last);
        }
        if !front.is_empty() {
            return None;
        }
    }
    let is_whole = list.len() - from == count && list.last().is_none_or(|last| (*last as usize) < files);
    is_whole.then_some(())
}
