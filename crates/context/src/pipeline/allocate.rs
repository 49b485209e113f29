//! Allocate: how much of the time and of the budget each strategy may use.

use std::time::Duration;

use crate::settings::StrategySettings;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allocation {
    /// The time limit of each strategy, in order.
    pub(super) times: Vec<Duration>,
    /// The time limit of all of them together; `None` for no limit.
    pub(super) together: Option<Duration>,
    pub(super) most_hits: usize,
    /// The token limit of one piece, as long as other pieces need tokens.
    pub(super) piece_tokens: usize,
    /// The weight of each strategy in the ranking, in order. It decides which strategy's locations come
    /// first, and therefore how the budget is shared.
    pub(super) weights: Vec<f64>,
}

/// The fraction of the time that is reserved for packing.
const PACKING_PART: u32 = 10;
/// But never more than this. Packing takes a few milliseconds if the index knows the files.
const PACKING_MOST: Duration = Duration::from_millis(200);
/// The approximate size of a piece in tokens: more locations than fit would only be left out.
const TOKENS_OF_A_PIECE: usize = 80;
/// At least this many locations, because ranks from several lists need something to agree on.
const FEWEST_HITS: usize = 30;
/// At most this many locations: a few hundred from all strategies together are read.
const MOST_HITS: usize = 100;
/// The largest fraction of the budget for one piece while other pieces need tokens.
const PIECE_PART: usize = 3;
/// But a piece may always take this much: with less, it isn't useful to a reader.
const PIECE_TOKENS: usize = 200;

/// How much the strategies with these settings may use of this many tokens and this much time.
pub(super) fn allocate(
    settings: &[StrategySettings],
    budget_tokens: usize,
    left: Option<Duration>,
) -> Allocation {
    let together = left.map(|left| left - (left / PACKING_PART).min(PACKING_MOST));
    Allocation {
        times: settings.iter().map(|own| own.timeout).collect(),
        together,
        most_hits: (budget_tokens / TOKENS_OF_A_PIECE).clamp(FEWEST_HITS, MOST_HITS),
        piece_tokens: budget_tokens.div_ceil(PIECE_PART).max(PIECE_TOKENS),
        weights: settings
            .iter()
            .map(|own| f64::from(own.weight_percent) / 100.0)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Allocation, allocate};
    use crate::settings::StrategySettings;

    #[test]
    fn everybody_gets_what_is_set() {
        let set = |timeout_ms, weight_percent| StrategySettings {
            enabled: true,
            timeout: Duration::from_millis(timeout_ms),
            weight_percent,
        };
        let settings = [set(2000, 100), set(50, 25)];
        for (budget, left_ms, together_ms, most_hits, piece_tokens) in [
            (8000, Some(3000), Some(2800), 100, 2667),
            (4000, Some(100), Some(90), 50, 1334),
            (1, Some(0), Some(0), 30, 200),
            (1_000_000, None, None, 100, 333_334),
        ] {
            let allocation = allocate(&settings, budget, left_ms.map(Duration::from_millis));
            let expected = Allocation {
                times: vec![Duration::from_millis(2000), Duration::from_millis(50)],
                together: together_ms.map(Duration::from_millis),
                most_hits,
                piece_tokens,
                weights: vec![1.0, 0.25],
            };
            assert_eq!(allocation, expected);
        }
    }
}
