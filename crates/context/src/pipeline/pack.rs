//! Pack: fills the budget.

use kernel::Deadline;
use tokenizer::Tokenizer;

use super::depth::forms as forms_of;
use super::unit::{Form, Piece, Unit};
use crate::answer::{Depth, LeftOut};

#[derive(Debug)]
pub(super) struct Room<'a> {
    pub(super) tokens: usize,
    /// The token limit of one piece, as long as other pieces need tokens.
    pub(super) piece_tokens: usize,
    /// When it passes, the rest is left out, except for the first piece: an answer that is a little late is better than
    /// no answer.
    pub(super) deadline: &'a Deadline,
    pub(super) tokenizer: &'a Tokenizer,
}

#[derive(Debug)]
pub(super) struct Packed {
    pub(super) pieces: Vec<Piece>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) left_out_total: usize,
}

/// The fewest tokens of a piece: a heading and a word.
const SMALLEST_PIECE_TOKENS: usize = 6;
/// If this many in a row don't fit, the rest is left out unseen: only a few tokens of the budget remain, enough
/// for a name or two.
const MOST_MISSES: usize = 24;
/// How many left-out results are listed. For more, ask for a larger budget.
const MOST_LEFT_OUT: usize = 20;

/// Packs the units, which come best first; so do the pieces. Each is as full as fits, and the rest of the budget is
/// used to show the best of them more fully. All of them together stay within the budget.
pub(super) fn pack(units: Vec<Unit>, room: &Room<'_>) -> Packed {
    let mut left = room.tokens;
    let mut pieces: Vec<(Piece, usize)> = Vec::new();
    let mut left_out = Vec::new();
    let mut left_out_total = 0;
    let mut misses = 0;
    for unit in units {
        let is_late = !pieces.is_empty() && room.deadline.has_passed();
        if misses == MOST_MISSES || is_late {
            left_out_total += 1;
            continue;
        }
        let forms = forms_of(&unit);
        if let Some((piece, place)) = room.fullest(&unit, &forms, left) {
            left -= piece.tokens;
            pieces.push((piece, place));
            misses = 0;
        } else if let Some(form) = forms.first() {
            if left_out.len() < MOST_LEFT_OUT {
                left_out.push(room.left_out(&unit, form));
            }
            left_out_total += 1;
            misses += 1;
        }
    }
    for (piece, place) in pieces.iter_mut().filter(|(_, place)| *place > 0) {
        if room.deadline.has_passed() {
            break;
        }
        let forms = forms_of(&piece.unit);
        let most = left + piece.tokens;
        let mut fuller = forms.iter().take(*place);
        if let Some(fuller) = fuller.find_map(|form| room.piece(&piece.unit, form, most)) {
            left = most - fuller.tokens;
            *piece = fuller;
        }
    }
    Packed {
        pieces: pieces.into_iter().map(|(piece, _)| piece).collect(),
        left_out,
        left_out_total,
    }
}

impl Room<'_> {
    /// A unit in the fullest form within the limit of a piece, and the index of the form.
    fn fullest(&self, unit: &Unit, forms: &[Form], left: usize) -> Option<(Piece, usize)> {
        if left < SMALLEST_PIECE_TOKENS {
            return None;
        }
        let most = left.min(self.piece_tokens);
        let mut all = forms.iter().enumerate();
        let fullest = all.find_map(|(place, form)| Some((self.piece(unit, form, most)?, place)));
        // If there is no smaller form, it may take more than its share, if the budget allows.
        fullest.or_else(|| Some((self.piece(unit, forms.last()?, left)?, forms.len() - 1)))
    }

    /// A unit in this form, if it has at most this many tokens.
    fn piece(&self, unit: &Unit, form: &Form, most: usize) -> Option<Piece> {
        let text = form.text(&unit.source);
        let rendered = render(unit, form, &text);
        let tokens = self.tokenizer.count_up_to(most, &rendered)?;
        Some(Piece {
            unit: unit.clone(),
            form: form.clone(),
            text,
            rendered,
            tokens,
        })
    }

    fn left_out(&self, unit: &Unit, form: &Form) -> LeftOut {
        let text = form.text(&unit.source);
        let rendered = render(unit, form, &text);
        LeftOut {
            path: unit.source.path.clone(),
            lines: form.lines,
            score: unit.score,
            tokens: self.tokenizer.count(&rendered),
        }
    }
}

/// A piece as a model gets it: a heading that says where it is from, such as
/// `## src/config.rs:12-40 (function parse_config)`, its text, and an empty line.
///
/// Tokenizers never merge the end of a line with a `#`. So a piece has as many tokens among others as alone.
fn render(unit: &Unit, form: &Form, text: &str) -> String {
    let place = format!("## {}:{}", unit.source.path, form.lines);
    match unit.symbol() {
        // Only the name is shown, so don't repeat it.
        Some(symbol) if form.depth != Depth::Name => format!("{place} ({symbol})\n{text}\n\n"),
        _ => format!("{place}\n{text}\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use kernel::{Clock, Deadline, ManualClock};
    use tokenizer::{Tokenizer, TokenizerName};

    use super::super::source::Source;
    use super::super::unit::{Shape, Unit};
    use super::{Room, pack};
    use crate::answer::Depth;
    use crate::lines::Lines;
    use crate::path::TreePath;

    fn unit(path: &str) -> Unit {
        let source = Source::new(TreePath::new(path).unwrap(), "one two\n".into(), None);
        Unit {
            source: Arc::new(source),
            lines: Lines::one(1).unwrap(),
            shape: Shape::Window,
            depth: Depth::Body,
            hits: Vec::new(),
            found: Vec::new(),
            score: 1.0,
            parts: Vec::new(),
        }
    }

    /// When time runs out, the rest is left out and counted; the first piece is always shown.
    #[test]
    fn when_the_time_is_over_the_rest_is_left_out() {
        let clock: Arc<dyn Clock> = ManualClock::new();
        let tokenizer = Tokenizer::load(TokenizerName::O200k).unwrap();
        for (deadline, shown, left_out) in [
            (Deadline::never(), 3, 0),
            (Deadline::after(&clock, Duration::ZERO), 1, 2),
        ] {
            let room = Room {
                tokens: 1000,
                piece_tokens: 500,
                deadline: &deadline,
                tokenizer,
            };
            let packed = pack(["a", "b", "c"].map(unit).into(), &room);
            assert_eq!((packed.pieces.len(), packed.left_out_total), (shown, left_out));
        }
    }
}
