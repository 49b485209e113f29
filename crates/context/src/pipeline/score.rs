//! Score: how well a unit fits, by its ranks in the lists of several strategies.

use std::cmp::Ordering;

use super::unit::Unit;
use crate::answer::ScorePart;
use crate::strategy::StrategyName;

/// How slowly ranks lose value. With the usual 60, the first of a list hardly counts more than the twentieth, and an
/// answer has room for about ten. 10 did better than 60 on the twelve crates of the benchmark.
const SMOOTHING: f64 = 10.0;

/// Computes the score of each unit and its parts, and puts the best first. The strategies are those that ran, each with its
/// weight.
///
/// Reciprocal rank fusion: the unit at rank `n` of a list gets `weight / (10 + n)` from it. Scores of different
/// strategies can't be compared, but their ranks can; and a unit that several of them found comes before the favorite
/// of one.
pub(super) fn score(units: &mut [Unit], strategies: &[(StrategyName, f64)]) {
    for unit in units.iter_mut() {
        let part = |found: &super::unit::UnitSource| {
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

/// Best first; ties by path and line, so that the order is deterministic.
fn best_first(one: &Unit, other: &Unit) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    let place = |unit: &Unit| (unit.source.path.clone(), unit.lines);
    by_score.then_with(|| place(one).cmp(&place(other)))
}
