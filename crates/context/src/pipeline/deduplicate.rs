//! Deduplicate: turns the locations of all strategies into pieces of files that don't overlap.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::source::{Source, Sources};
use super::unit::{Shape, Unit, UnitSource};
use super::widen::widen;
use crate::answer::Depth;
use crate::executor::Ran;
use crate::lines::Lines;
use crate::path::TreePath;
use crate::strategy::Hit;

/// The units, and how many hits weren't processed.
#[derive(Debug)]
pub(super) struct Deduplicated {
    pub(super) units: Vec<Unit>,
    /// Hits beyond the limit, or for which there was no time.
    pub(super) beyond: usize,
}

/// How many hits are processed, the best of each strategy first. At most this many files are read; no budget has
/// room for more useful pieces.
const MOST_HITS: usize = 400;
/// Windows with no more lines than this between them become one.
const GAP_LINES: u32 = 3;

/// Widens each hit to its enclosing definition; overlapping ones become one unit. The units are ordered by path and
/// line. The same hits give the same units in any order of arrival.
pub(super) fn deduplicate(ran: &[Ran], sources: &mut Sources<'_>) -> Deduplicated {
    let (hits, mut beyond) = interleaved(ran);
    // Files are read in the order of their best hit, so that the best are within the limits.
    let mut order: Vec<&TreePath> = Vec::new();
    let mut by_path: BTreeMap<&TreePath, Vec<&Hit>> = BTreeMap::new();
    for (_, hit) in &hits {
        let of_path = by_path.entry(&hit.path).or_insert_with(|| {
            order.push(&hit.path);
            Vec::new()
        });
        of_path.push(hit);
    }
    let mut units: BTreeMap<&TreePath, Vec<Unit>> = BTreeMap::new();
    for path in order {
        let hits = &by_path[path];
        if !units.is_empty() && !sources.has_time() {
            beyond += hits.len();
            continue;
        }
        let lines: Vec<Lines> = hits.iter().filter_map(|hit| hit.lines).collect();
        if let Some(source) = sources.read(path, &lines) {
            units.insert(path, of_file(&source, hits));
        }
    }
    for (strategy, ran) in ran.iter().enumerate() {
        let own = hits.iter().filter(|(of, _)| *of == strategy).map(|(_, hit)| *hit);
        rank(strategy, own, ran.hits.len(), &mut units);
    }
    Deduplicated {
        units: units.into_values().flatten().collect(),
        beyond,
    }
}

/// The hits of all strategies, the first of each before the second of any, up to the limit; and how many there
/// are beyond it.
fn interleaved(ran: &[Ran]) -> (Vec<(usize, &Hit)>, usize) {
    let longest = ran.iter().map(|ran| ran.hits.len()).max().unwrap_or_default();
    let total: usize = ran.iter().map(|ran| ran.hits.len()).sum();
    let at = |place| {
        let all = ran.iter().enumerate();
        all.filter_map(move |(strategy, ran)| Some((strategy, ran.hits.get(place)?)))
    };
    let hits: Vec<_> = (0..longest).flat_map(at).take(MOST_HITS).collect();
    let beyond = total - hits.len();
    (hits, beyond)
}

/// The units of a file, ordered by line.
fn of_file(source: &Arc<Source>, hits: &[&Hit]) -> Vec<Unit> {
    let Some(all) = source.all() else {
        return Vec::new();
    };
    let unit = |lines, shape, depth, hits| Unit {
        source: Arc::clone(source),
        lines,
        shape,
        depth,
        hits,
        found: Vec::new(),
        score: 0.0,
        parts: Vec::new(),
    };
    let mut units: Vec<Unit> = Vec::new();
    for hit in hits {
        let Some(lines) = hit.lines.and_then(|lines| source.clamp(lines)) else {
            continue;
        };
        let (widened, shape) = widen(source.outline.as_ref(), all, lines);
        if source.trim(widened).is_none() {
            // There is nothing to show.
            continue;
        }
        units.push(unit(widened, shape, hit.depth, vec![lines]));
    }
    // Stable, so that the best hit of equal units stays the first.
    units.sort_by_key(|unit| (unit.lines.first(), std::cmp::Reverse(unit.lines.last())));
    let mut merged: Vec<Unit> = Vec::new();
    for unit in units {
        match merged.last_mut() {
            Some(last) if belongs(last, &unit) => merge(last, unit),
            _ => merged.push(unit),
        }
    }
    if merged.is_empty() && hits.iter().any(|hit| hit.lines.is_none()) {
        let depth = hits.iter().map(|hit| hit.depth).max().unwrap_or(Depth::Signature);
        merged.push(unit(all, Shape::File, depth.min(Depth::Signature), Vec::new()));
    }
    merged
}

fn belongs(one: &Unit, next: &Unit) -> bool {
    let are_windows = (one.shape, next.shape) == (Shape::Window, Shape::Window);
    let gap = if are_windows { GAP_LINES } else { 0 };
    next.lines.first() <= one.lines.last().saturating_add(gap)
}

/// Merges a unit into the one before it. The larger one defines what both are, if it covers both.
fn merge(into: &mut Unit, next: Unit) {
    let lines = into.lines.span(next.lines);
    if into.lines != lines {
        into.shape = if next.lines == lines {
            next.shape
        } else {
            Shape::Window
        };
    }
    into.lines = lines;
    into.depth = into.depth.max(next.depth);
    into.hits.extend(next.hits);
}

/// Records which units a strategy has found, and at which rank. Several hits on one unit have one rank, and a hit
/// on a whole file has one rank for all units of that file.
fn rank<'a>(
    strategy: usize,
    hits: impl Iterator<Item = &'a Hit>,
    most: usize,
    units: &mut BTreeMap<&TreePath, Vec<Unit>>,
) {
    let mut rank = 1;
    for hit in hits {
        let Some(of_file) = units.get_mut(&hit.path) else {
            continue;
        };
        let lines = hit
            .lines
            .map(|lines| of_file.first().and_then(|unit| unit.source.clamp(lines)));
        let is_meant = |unit: &Unit| match lines {
            None => true,
            Some(lines) => {
                lines.is_some_and(|lines| unit.lines.overlaps(lines) && unit.hits.contains(&lines))
            }
        };
        let mut is_new = false;
        for unit in of_file.iter_mut().filter(|unit| is_meant(unit)) {
            if unit.found.last().is_some_and(|found| found.strategy == strategy) {
                continue;
            }
            is_new = true;
            unit.found.push(UnitSource {
                strategy,
                rank,
                why: hit.why.clone(),
            });
        }
        rank += usize::from(is_new);
    }
    debug_assert!(rank <= most + 1, "a place for each hit at most");
}
