//! Byte-pair encoding of one piece: while two neighbors together are a token, merge the pair of the lowest rank, and of
//! several with that rank the first.
//!
//! The pairs wait in a heap, so a piece of n bytes takes O(n log n). The usual way, to look at all pairs again after each
//! merge, takes minutes for a mebibyte of the same letter. What is stored per byte is small for the same reason: most of the
//! time for such a piece goes into waiting for memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::Vocabulary;

/// Merges piece after piece, and keeps what it has allocated.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    /// The length of each part, at its first byte; zero at its other bytes.
    lengths: Vec<u8>,
    /// The length of each part, at its last byte. What other bytes have is outdated.
    lengths_at_end: Vec<u8>,
    /// What can be merged. A merge leaves outdated pairs behind; they're skipped when they come up.
    pairs: BinaryHeap<Reverse<Pair>>,
}

/// Two parts that together are a token, packed into one number: rank, first byte, length. So they're ordered by rank and place.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Pair(u64);

impl Pair {
    const LENGTH_BITS: u32 = 8;
    const RANK_BITS: u32 = Vocabulary::RANK_BITS;
    const START_BITS: u32 = u64::BITS - Self::RANK_BITS - Self::LENGTH_BITS;

    fn new(rank: u32, start: usize, length: u8) -> Self {
        let place = (start as u64) << Self::LENGTH_BITS;
        Self(u64::from(rank) << (Self::START_BITS + Self::LENGTH_BITS) | place | u64::from(length))
    }

    fn start(self) -> usize {
        ((self.0 << Self::RANK_BITS) >> (Self::RANK_BITS + Self::LENGTH_BITS)) as usize
    }

    fn length(self) -> u8 {
        self.0 as u8
    }
}

impl Merger {
    /// Counts the tokens of a piece.
    pub(crate) fn count(&mut self, piece: &[u8], vocabulary: &Vocabulary) -> usize {
        if vocabulary.rank(piece).is_some() {
            return 1;
        }
        for lengths in [&mut self.lengths, &mut self.lengths_at_end] {
            lengths.clear();
            lengths.resize(piece.len(), 1);
        }
        self.pairs.clear();
        for start in 0..piece.len().saturating_sub(1) {
            self.offer(start, start + 1, piece, vocabulary);
        }
        let mut parts = piece.len();
        while let Some(Reverse(pair)) = self.pairs.pop() {
            let (start, length) = (pair.start(), pair.length());
            let end = start + usize::from(length);
            let first = self.lengths[start];
            let middle = start + usize::from(first);
            let is_current = first != 0 && middle < end && end - middle == usize::from(self.lengths[middle]);
            if !is_current {
                continue;
            }
            self.lengths[start] = length;
            self.lengths[middle] = 0;
            self.lengths_at_end[end - 1] = length;
            parts -= 1;
            if start > 0 {
                let previous = start - usize::from(self.lengths_at_end[start - 1]);
                self.offer(previous, start, piece, vocabulary);
            }
            if end < piece.len() {
                self.offer(start, end, piece, vocabulary);
            }
        }
        parts
    }

    /// Remembers the part at `start` and the one after it, at `middle`, if they can be merged.
    fn offer(&mut self, start: usize, middle: usize, piece: &[u8], vocabulary: &Vocabulary) {
        let token = &piece[start..middle + usize::from(self.lengths[middle])];
        if let (Some(rank), Ok(length)) = (vocabulary.rank(token), u8::try_from(token.len())) {
            self.pairs.push(Reverse(Pair::new(rank, start, length)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pair;

    #[test]
    fn pairs_are_ordered_by_rank_and_place() {
        let last = (1 << Pair::RANK_BITS) - 1;
        let pairs = [(0, 7, 255), (1, 0, 2), (1, 3, 2), (last, 1 << 37, 128)];
        let packed = pairs.map(|(rank, start, length)| Pair::new(rank, start, length));
        assert!(packed.is_sorted());
        assert_eq!(
            packed.map(|pair| (pair.start(), pair.length())),
            pairs.map(|(_, start, length)| (start, length))
        );
    }
}
