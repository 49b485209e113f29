//! Score: how well a unit fits, by the places that several strategies gave it.

use std::cmp::Ordering;
use std::fmt;

use super::unit::Unit;
use crate::answer::ScorePart;
use crate::strategy::StrategyName;

/// Ranks units.
pub(super) trait Score: fmt::Debug + Send + Sync {
    /// Gives each unit its score and the parts of it, and puts the best first. The strategies are those that ran, each with
    /// its weight.
    fn score(&self, units: &mut [Unit], strategies: &[(StrategyName, f64)]);
}

/// Reciprocal rank fusion: what stands at place `n` of a list gets `weight / (10 + n)` from it. Scores of different strategies
/// cannot be compared, their places can; and what several of them have found comes before what one of them likes best.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReciprocalRank;

/// How slowly a place loses its worth. With the 60 of the textbooks the first of a list hardly counts more than the twentieth,
/// and an answer has room for about ten. Of 10 and 60 it did better on the twelve crates of the benchmark.
const SMOOTHING: f64 = 10.0;

impl Score for ReciprocalRank {
    fn score(&self, units: &mut [Unit], strategies: &[(StrategyName, f64)]) {
        for unit in units.iter_mut() {
            let part = |found: &super::unit::Found| {
                let (strategy, weight) = strategies.get(found.strategy)?;
                #[expect(clippy::cast_precision_loss, reason = "places are far below 2^52")]
                let adds = weight / (SMOOTHING + found.rank as f64);
                Some(ScorePart {
                    strategy: strategy.clone(),
                    rank: found.rank,
                    adds,
                    why: found.why.clone(),
                })
            };
            unit.parts = unit.found.iter().filter_map(part).collect();
            unit.score = unit.parts.iter().map(|part| part.adds).sum();
        }
        units.sort_by(best_first);
    }
}

/// The best first; ties by path and line, so that the order is always the same.
fn best_first(one: &Unit, other: &Unit) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    let place = |unit: &Unit| (unit.source.path.clone(), unit.lines);
    by_score.then_with(|| place(one).cmp(&place(other)))
}
