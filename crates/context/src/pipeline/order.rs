//! Order: how the pieces are read.

use std::collections::BTreeMap;
use std::fmt;

use super::unit::Piece;
use crate::path::TreePath;

/// Puts the pieces into reading order.
pub(super) trait Order: fmt::Debug + Send + Sync {
    fn order(&self, pieces: &mut [Piece]);
}

/// The file with the best piece first, and the pieces of a file together, ordered by line.
#[derive(Clone, Copy, Debug)]
pub(super) struct BestFileFirst;

impl Order for BestFileFirst {
    fn order(&self, pieces: &mut [Piece]) {
        let mut best: BTreeMap<TreePath, usize> = BTreeMap::new();
        for (place, piece) in pieces.iter().enumerate() {
            best.entry(piece.unit.source.path.clone()).or_insert(place);
        }
        pieces.sort_by_key(|piece| (best.get(&piece.unit.source.path).copied(), piece.form.lines));
    }
}
