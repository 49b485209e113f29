//! Assembles the pieces into an answer, and makes sure that it never exceeds its token budget.

use std::collections::BTreeMap;

use tokenizer::Tokenizer;

use super::pack::Packed;
use super::unit::Piece;
use crate::answer::{Fragment, LeftOut};
use crate::path::TreePath;

#[derive(Debug, Default)]
pub(super) struct Assembled {
    pub(super) fragments: Vec<Fragment>,
    pub(super) text: String,
    pub(super) tokens: usize,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) left_out_total: usize,
}

/// How many times the last piece is dropped to make the text fit. Pieces have as many tokens among others as
/// alone, except for the last one, which may have one more without the empty line after it.
const MOST_TRIES: usize = 8;

/// Joins the pieces, in reading order. The worst of them are dropped until the text fits.
pub(super) fn assemble(packed: Packed, budget_tokens: usize, tokenizer: &Tokenizer) -> Assembled {
    let mut assembled = Assembled {
        left_out: packed.left_out,
        left_out_total: packed.left_out_total,
        ..Assembled::default()
    };
    let mut pieces = packed.pieces;
    for _ in 0..MOST_TRIES {
        let mut ordered = pieces.clone();
        order(&mut ordered);
        let mut text: String = ordered.iter().map(|piece| piece.rendered.as_str()).collect();
        text.pop();
        if let Some(tokens) = tokenizer.count_up_to(budget_tokens, &text) {
            assembled.fragments = ordered.into_iter().map(fragment).collect();
            assembled.text = text;
            assembled.tokens = tokens;
            return assembled;
        }
        if let Some(dropped) = pieces.pop() {
            assembled.left_out.insert(0, left_out(&dropped));
            assembled.left_out_total += 1;
        }
    }
    assembled.left_out_total += pieces.len();
    assembled
}

/// The file with the best piece first, and the pieces of a file together, ordered by line.
fn order(pieces: &mut [Piece]) {
    let mut best: BTreeMap<TreePath, usize> = BTreeMap::new();
    for (place, piece) in pieces.iter().enumerate() {
        best.entry(piece.unit.source.path.clone()).or_insert(place);
    }
    pieces.sort_by_key(|piece| (best.get(&piece.unit.source.path).copied(), piece.form.lines));
}

fn fragment(piece: Piece) -> Fragment {
    Fragment {
        symbol: piece.unit.symbol(),
        path: piece.unit.source.path.clone(),
        lines: piece.form.lines,
        depth: piece.form.depth,
        text: piece.text,
        tokens: piece.tokens,
        score: piece.unit.score,
        parts: piece.unit.parts,
    }
}

fn left_out(piece: &Piece) -> LeftOut {
    LeftOut {
        path: piece.unit.source.path.clone(),
        lines: piece.form.lines,
        score: piece.unit.score,
        tokens: piece.tokens,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokenizer::{Tokenizer, TokenizerName};

    use super::super::pack::Packed;
    use super::super::source::Source;
    use super::super::unit::{Form, Piece, Shape, Shown, Unit};
    use super::assemble;
    use crate::answer::Depth;
    use crate::lines::Lines;
    use crate::path::TreePath;

    /// A piece that claims to have no tokens.
    fn piece(path: &str) -> Piece {
        let lines = Lines::one(1).unwrap();
        let source = Source::new(TreePath::new(path).unwrap(), "one two\n".into(), None);
        Piece {
            unit: Unit {
                source: Arc::new(source),
                lines,
                shape: Shape::Window,
                depth: Depth::Body,
                hits: Vec::new(),
                found: Vec::new(),
                score: 1.0,
                parts: Vec::new(),
            },
            form: Form {
                depth: Depth::Body,
                lines,
                shown: Shown::Lines(vec![lines]),
            },
            text: "one two".to_owned(),
            rendered: format!("## {path}:1\none two\n\n"),
            tokens: 0,
        }
    }

    /// Whatever packing assumes, the text itself is counted, and the worst pieces are dropped until it fits.
    #[test]
    fn no_answer_has_more_tokens_than_its_budget() {
        let tokenizer = Tokenizer::load(TokenizerName::O200k).unwrap();
        let all = "## b:1\none two\n\n## a:1\none two\n";
        let first = "## b:1\none two\n";
        let (most, one) = (tokenizer.count(all), tokenizer.count(first));
        for (budget, text, left_out) in [
            (most, all, 0),
            (most - 1, first, 1),
            (one, first, 1),
            (one - 1, "", 2),
            (0, "", 2),
        ] {
            let packed = Packed {
                pieces: vec![piece("b"), piece("a")],
                left_out: Vec::new(),
                left_out_total: 0,
            };
            let assembled = assemble(packed, budget, tokenizer);
            let found = (
                assembled.text.as_str(),
                assembled.left_out.len(),
                assembled.left_out_total,
            );
            assert_eq!(found, (text, left_out, left_out), "{budget}");
            assert_eq!(assembled.tokens, tokenizer.count(text));
        }
    }
}
