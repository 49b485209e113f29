//! The address of content. Computing it only costs as much as the content has data.
//!
//! Content is divided into blocks of [`HOLE_BYTES`]. If no block is all zeros, the address is the BLAKE3 hash of
//! the content. Otherwise it is the hash of a list: the length and hash of each run of other blocks, and the
//! length of each run of zeros. So the holes of a sparse file are never hashed, and the address still depends
//! only on the bytes.

use crate::blob::{BlobId, CHUNK_BYTES};

/// The alignment and minimum length of a hole.
pub(crate) const HOLE_BYTES: usize = CHUNK_BYTES;

/// Keeps the hash of a list apart from the hash of any content.
const LIST_CONTEXT: &str = "tidelock 2026-11 address of content with holes";

static ZEROS: [u8; HOLE_BYTES] = [0; HOLE_BYTES];

/// Whether a block, or a part of one, is all zeros.
pub fn is_zero(part: &[u8]) -> bool {
    let mut blocks = part.chunks(HOLE_BYTES);
    blocks.all(|block| block == &ZEROS[..block.len()])
}

impl BlobId {
    /// The address of some content.
    pub fn of(content: &[u8]) -> Self {
        if content.len() < HOLE_BYTES {
            return Self::from_bytes(*blake3::hash(content).as_bytes());
        }
        let mut hasher = BlobHasher::default();
        hasher.update(content);
        hasher.finish()
    }
}

/// Computes the address of content that arrives in pieces of any length.
#[derive(Clone, Debug, Default)]
pub struct BlobHasher {
    runs: RunHasher,
    /// How many bytes of the current block have arrived.
    block: usize,
    /// How many leading zeros of the current block are held back. The block may turn out to be a hole as long as
    /// these are all of it.
    held: usize,
}

impl BlobHasher {
    /// Adds bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(HOLE_BYTES - self.block));
            self.add(part);
            bytes = rest;
        }
    }

    /// Adds a number of zeros.
    pub fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let blocks = count - count % HOLE_BYTES as u64;
            let step = if self.block == 0 && blocks > 0 {
                self.runs.hole(blocks);
                blocks
            } else {
                let rest = HOLE_BYTES - self.block;
                let step = usize::try_from(count).map_or(rest, |count| count.min(rest));
                self.add(&ZEROS[..step]);
                step as u64
            };
            count -= step;
        }
    }

    /// The address of everything added so far.
    pub fn finish(mut self) -> BlobId {
        self.release();
        self.runs.id()
    }

    fn add(&mut self, part: &[u8]) {
        if self.held == self.block && is_zero(part) {
            self.held += part.len();
        } else {
            self.release();
            self.runs.data(part);
        }
        self.block += part.len();
        if self.block == HOLE_BYTES {
            if self.held == HOLE_BYTES {
                self.runs.hole(HOLE_BYTES as u64);
            }
            (self.block, self.held) = (0, 0);
        }
    }

    fn release(&mut self) {
        self.runs.data(&ZEROS[..self.held]);
        self.held = 0;
    }
}

/// Computes the address of content whose holes are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunHasher {
    run: blake3::Hasher,
    run_bytes: u64,
    hole_bytes: u64,
    /// The runs that are complete.
    list: Option<blake3::Hasher>,
}

impl RunHasher {
    pub(crate) fn data(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.end_hole();
        self.run.update(bytes);
        self.run_bytes += bytes.len() as u64;
    }

    pub(crate) fn hole(&mut self, bytes: u64) {
        self.end_run();
        self.hole_bytes += bytes;
    }

    pub(crate) fn id(&self) -> BlobId {
        if self.list.is_none() && self.hole_bytes == 0 {
            return BlobId::from_bytes(*self.run.finalize().as_bytes());
        }
        let mut all = self.clone();
        all.end_hole();
        all.end_run();
        BlobId::from_bytes(*all.list().finalize().as_bytes())
    }

    fn end_run(&mut self) {
        if self.run_bytes > 0 {
            let (bytes, hash) = (self.run_bytes.to_le_bytes(), self.run.finalize());
            self.list().update(b"d").update(&bytes).update(hash.as_bytes());
            self.run.reset();
            self.run_bytes = 0;
        }
    }

    fn end_hole(&mut self) {
        if self.hole_bytes > 0 {
            let bytes = self.hole_bytes.to_le_bytes();
            self.list().update(b"h").update(&bytes);
            self.hole_bytes = 0;
        }
    }

    fn list(&mut self) -> &mut blake3::Hasher {
        self.list
            .get_or_insert_with(|| blake3::Hasher::new_derive_key(LIST_CONTEXT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(parts: &[(u8, usize)]) -> Vec<u8> {
        let parts = parts.iter().map(|(byte, count)| vec![*byte; *count]);
        parts.collect::<Vec<_>>().concat()
    }

    fn in_steps(content: &[u8], step: usize) -> BlobId {
        let mut hasher = BlobHasher::default();
        for piece in content.chunks(step) {
            // Zeros may be passed as zeros or as bytes; the result is the same.
            if step.is_multiple_of(2) && is_zero(piece) {
                hasher.zeros(piece.len() as u64);
            } else {
                hasher.update(piece);
            }
        }
        hasher.finish()
    }

    #[test]
    fn an_address_depends_on_the_bytes_alone() {
        let plain = |content: &[u8]| BlobId::from_bytes(*blake3::hash(content).as_bytes());
        // Without a block of zeros, the address is the plain hash.
        for parts in [
            &[][..],
            &[(0, HOLE_BYTES - 1)],
            &[(1, 1), (0, 2 * HOLE_BYTES - 2), (1, 1)],
            &[(7, 3 * HOLE_BYTES)],
        ] {
            let content = content(parts);
            assert_eq!(BlobId::of(&content), plain(&content), "{parts:?}");
        }
        let mut seen = std::collections::HashSet::new();
        for parts in [
            &[(0, HOLE_BYTES)][..],
            &[(0, 2 * HOLE_BYTES)],
            &[(0, 2 * HOLE_BYTES + 1)],
            &[(1, 1), (0, 3 * HOLE_BYTES)],
            &[(1, HOLE_BYTES), (0, HOLE_BYTES), (1, 5)],
            &[(0, HOLE_BYTES), (1, HOLE_BYTES), (1, 5)],
            &[(0, HOLE_BYTES), (1, 5)],
        ] {
            let content = content(parts);
            let id = BlobId::of(&content);
            assert_ne!(id, plain(&content), "{parts:?}");
            assert!(seen.insert(id), "{parts:?}");
            for step in [
                1000,
                4097,
                HOLE_BYTES - 1,
                HOLE_BYTES,
                HOLE_BYTES + 1,
                3 * HOLE_BYTES,
            ] {
                assert_eq!(in_steps(&content, step), id, "{parts:?} in steps of {step}");
            }
        }
    }
}
