//! The steps of the strategy, in order.

use kernel::{Deadline, Scope};

use super::super::keyword::{Time, Wishes};
use super::super::names::{NameIndex, Names};
use super::candidates::{Candidate, Rarity, candidates};
use super::fit::fit;
use super::walk::walk;
use super::wanted::{Wanted, wanted_of};
use crate::answer::Depth;
use crate::lines::Lines;
use crate::outline::{Definition, Outline, SymbolKind};
use crate::strategy::{Ask, Hit, StrategyError};

/// Results that score below this fraction of the best are useless.
const LEAST_SHARE: f64 = 0.2;
/// The most definitions that are examined for one question, those of the most promising files.
const LOOK_LIMIT: usize = 50_000;
/// The percentage of the time after which the search stops with what it has.
const LOOK_PERCENT: u32 = 95;

/// Searches, with the index if there is one. It blocks.
pub(in crate::strategies) fn look<I: NameIndex>(
    ask: &Ask,
    index: Option<&I>,
    scope: &Scope,
    deadline: Deadline,
) -> Result<Vec<Hit>, StrategyError> {
    let wanted = wanted_of(&ask.query);
    if wanted.is_empty() {
        let why = "there is no name to look for".to_owned();
        return Err(StrategyError::NotApplicable(why));
    }
    let time = Time::new(scope, &deadline);
    let names = match index {
        Some(index) => Names::indexed(index, &ask.searched, time),
        None => {
            let walked = walk(&*ask.searched.view, &wanted, time)?;
            Names::alone(walked.files, walked.of_files)
        }
    };
    let failed = |error: std::io::Error| StrategyError::Failed(error.to_string());
    let wishes = Wishes::of(&ask.query);
    let (files, rarity) = candidates(&names, &wanted, &ask.focus, wishes).map_err(failed)?;
    let look = Look {
        wanted,
        rarity,
        wishes,
    };
    let mut hits = Vec::new();
    let mut looked_at = 0;
    for file in &files {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        if looked_at > LOOK_LIMIT || time.is_used(LOOK_PERCENT) {
            break;
        }
        looked_at += look.hits(&names, file, &mut hits).map_err(failed)?;
    }
    if scope.is_cancelled() {
        return Err(StrategyError::Cancelled);
    }
    Ok(best(hits, ask.most_hits))
}

struct Look {
    wanted: Wanted,
    rarity: Rarity,
    wishes: Wishes,
}

impl Look {
    /// Adds the hits in a file. Returns how many definitions it has.
    fn hits<I: NameIndex>(
        &self,
        names: &Names<'_, I>,
        file: &Candidate,
        hits: &mut Vec<Hit>,
    ) -> std::io::Result<usize> {
        let (Some(path), Some(outline)) = (names.path(file.node), names.outline(file.node)?) else {
            return Ok(0);
        };
        for definition in &outline.definitions {
            let Some(fit) = fit(&self.wanted, &self.rarity, path, &outline, definition) else {
                continue;
            };
            let of_test = if is_in_tests(&outline, definition) {
                self.wishes.of_test()
            } else {
                1.0
            };
            hits.push(Hit {
                path: path.clone(),
                lines: Some(definition.lines),
                score: fit * file.factor * of_test,
                why: format!("defines {} ({})", definition.name, definition.kind.name()),
                depth: Depth::Body,
            });
        }
        Ok(outline.definitions.len())
    }
}

/// Whether it is part of the tests in the same file.
fn is_in_tests(outline: &Outline, definition: &Definition) -> bool {
    let mut parent = definition.parent;
    while let Some(above) = parent.and_then(|place| outline.definitions.get(place as usize)) {
        if above.kind == SymbolKind::Module && matches!(above.name.as_str(), "tests" | "test") {
            return true;
        }
        parent = above.parent;
    }
    false
}

fn best(mut hits: Vec<Hit>, most: usize) -> Vec<Hit> {
    let first = |hit: &Hit| hit.lines.map(Lines::first);
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| one.path.cmp(&other.path))
            .then_with(|| first(one).cmp(&first(other)))
            .then_with(|| one.lines.cmp(&other.lines))
            .then_with(|| one.why.cmp(&other.why))
    });
    let least = hits.first().map_or(0.0, |best| best.score * LEAST_SHARE);
    hits.retain(|hit| hit.score >= least);
    hits.dedup_by(|one, other| one.path == other.path && one.lines == other.lines);
    hits.truncate(most);
    hits
}
