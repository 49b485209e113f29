//! Allocate: how much of the time and of the budget each may use.

use std::fmt;
use std::time::Duration;

use crate::settings::StrategySettings;

/// Says how much each may use.
pub(super) trait Allocate: fmt::Debug + Send + Sync {
    /// How much the strategies with these settings may use of so many tokens and so much time.
    fn allocate(
        &self,
        settings: &[StrategySettings],
        budget_tokens: usize,
        left: Option<Duration>,
    ) -> Allocation;
}

/// How much each may use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allocation {
    /// How long each strategy may look, in their order.
    pub(super) times: Vec<Duration>,
    /// How long all of them together may; `None` is as long as they want.
    pub(super) together: Option<Duration>,
    /// The most places that each may name.
    pub(super) most_hits: usize,
    /// The most tokens of one piece, as long as there are others that want some.
    pub(super) piece_tokens: usize,
    /// How much each counts in the ranking, in their order. There it decides whose places come first, and so who gets which
    /// share of the budget.
    pub(super) weights: Vec<f64>,
}

/// Everybody gets what is set for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsSet;

/// What is kept of the time for packing: this part of it.
const PACKING_PART: u32 = 10;
/// And never more than this. Packing takes a few milliseconds where the index knows the files.
const PACKING_MOST: Duration = Duration::from_millis(200);
/// A piece has about so many tokens: more places than fit would only be looked at to be left out.
const TOKENS_OF_A_PIECE: usize = 80;
/// At least so many places, because ranks from several lists need something to agree on.
const FEWEST_HITS: usize = 30;
/// At most so many places: a few hundred from all strategies together are read.
const MOST_HITS: usize = 100;
/// One piece takes no more than this part of the budget while others want some of it.
const PIECE_PART: usize = 3;
/// But this much it may take in any case: of less than that, a reader learns little.
const PIECE_TOKENS: usize = 200;

impl Allocate for AsSet {
    fn allocate(
        &self,
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
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Allocate as _, Allocation, AsSet};
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
            let allocation = AsSet.allocate(&settings, budget, left_ms.map(Duration::from_millis));
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
