//! How well a file fits, and which of its lines. All of it is pure.

use super::concepts::CONCEPT_LIMIT;
use super::pattern::{Mark, Mask};
use super::reading::ReadFile;
use crate::lines::Lines;

/// The parameters of BM25: the usual ones, except for the length, which matters less in code.
const SATURATION: f64 = 1.2;
const LENGTH_PART: f64 = 0.4;
/// The typical size of a file.
const USUAL_BYTES: f64 = 8192.0;
/// Matches within this many lines belong together.
const WINDOW_LINES: u32 = 12;
/// The most locations in one file.
const PLACES: usize = 3;
/// A further location needs this fraction of the best score.
const FURTHER_PART: f64 = 0.5;

/// The weights of the parts of a file's score.
mod share {
    /// How often the words occur.
    pub(super) const OFTEN: f64 = 0.5;
    /// How many of them are close together.
    pub(super) const TOGETHER: f64 = 1.3;
    /// The share of a defined name that they cover.
    pub(super) const DEFINED: f64 = 0.8;
    /// How well they fit the path.
    pub(super) const PATH: f64 = 0.7;
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileScore {
    pub(super) score: f64,
    pub(super) mask: Mask,
    /// The concept that covers most of a defined name.
    pub(super) defines: Option<usize>,
    /// Its best locations, best first, with their share of the score, up to 1.
    pub(super) places: Vec<(Lines, f64)>,
}

/// The inverse document frequency of a term in `files` of all files.
pub(super) fn rarity(of_files: usize, files: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "files are counted in millions at most")]
    let (all, some) = (of_files.max(files) as f64, files as f64);
    (1.0 + (all - some + 0.5) / (some + 0.5)).ln()
}

/// Scores a file, given the weight of each concept and how well it fits the path.
pub(super) fn score(file: &ReadFile, worth: &[f64], in_path: &[f64; CONCEPT_LIMIT]) -> FileScore {
    let mut often = [0.0_f64; CONCEPT_LIMIT];
    let mut defined = [0.0_f64; CONCEPT_LIMIT];
    let mut mask = Mask::default();
    for mark in &file.marks {
        let concept = usize::from(mark.concept);
        mask.set(concept);
        often[concept] += f64::from(mark.strength);
        defined[concept] = defined[concept].max(f64::from(mark.defined));
    }
    #[expect(clippy::cast_precision_loss, reason = "files are small")]
    let length = 1.0 - LENGTH_PART + LENGTH_PART * file.bytes as f64 / USUAL_BYTES;
    let mut sum = 0.0;
    let mut defines: Option<(usize, f64)> = None;
    for (concept, worth) in worth.iter().enumerate() {
        let count = often[concept];
        sum += share::OFTEN * worth * count * (SATURATION + 1.0) / (count + SATURATION * length);
        sum += share::PATH * worth * in_path[concept];
        let by_name = worth * defined[concept];
        sum += share::DEFINED * by_name;
        if by_name > 0.0 && defines.is_none_or(|(_, best)| by_name > best) {
            defines = Some((concept, by_name));
        }
    }
    let places = places(&file.marks, worth);
    let best = places.first().map_or(0.0, |(_, value)| *value);
    sum += share::TOGETHER * best;
    FileScore {
        score: sum,
        mask,
        defines: defines.map(|(concept, _)| concept),
        places: places
            .into_iter()
            .map(|(lines, value)| (lines, value / best))
            .collect(),
    }
}

/// The locations with most concepts close together, best first.
fn places(marks: &[Mark], worth: &[f64]) -> Vec<(Lines, f64)> {
    let mut windows = Vec::new();
    let mut begin = 0;
    while let Some(first) = marks.get(begin) {
        let window = &marks[begin..];
        let end = window.partition_point(|mark| mark.line - first.line < WINDOW_LINES);
        if let Some(place) = value(&window[..end], worth) {
            windows.push(place);
        }
        begin += marks[begin..].partition_point(|mark| mark.line == first.line);
    }
    windows.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let mut chosen: Vec<(Lines, f64)> = Vec::new();
    for (lines, value) in windows {
        let is_good = chosen
            .first()
            .is_none_or(|(_, best)| value >= best * FURTHER_PART);
        if !is_good || chosen.len() == PLACES {
            break;
        }
        if !chosen.iter().any(|(known, _)| known.overlaps(lines)) {
            chosen.push((lines, value));
        }
    }
    chosen
}

fn value(marks: &[Mark], worth: &[f64]) -> Option<(Lines, f64)> {
    let mut best = [0.0_f64; CONCEPT_LIMIT];
    for mark in marks {
        let value = f64::from(mark.strength) + 0.5 * f64::from(mark.defined);
        let best = &mut best[usize::from(mark.concept)];
        *best = best.max(value);
    }
    let value = worth.iter().zip(best).map(|(worth, best)| worth * best).sum();
    let lines = Lines::new(marks.first()?.line, marks.last()?.line)?;
    Some((lines, value))
}
