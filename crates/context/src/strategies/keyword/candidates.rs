//! The files worth reading, from the index.

use std::io;

use super::concepts::{Concept, Form};
use super::pattern::{Mask, Pattern};
use super::postings::{Postings, may_hold, may_name};
use super::score::rarity;
use crate::index::FileId;
use crate::path::TreePath;

/// The most files that are read for a question, the most promising ones. Files with fewer rare words can't catch up.
pub(super) const READ_LIMIT: usize = 256;
/// Files with a term as rare as this are always read.
const RARE_FILES: usize = 64;

#[derive(Debug, PartialEq)]
pub(super) struct Candidates {
    /// In the order of their paths.
    pub(super) files: Vec<TreePath>,
    /// How many files there are in total.
    pub(super) of_files: usize,
    /// For each concept, the number of files it occurs in, if that is known without reading.
    pub(super) known: Vec<Option<usize>>,
}

/// A path as written in the question, and the line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct WantedPath {
    /// In lower case, with `/`.
    pub(super) path: String,
    pub(super) line: Option<u32>,
}

impl WantedPath {
    pub(super) fn fits(&self, path: &TreePath) -> bool {
        let (path, wanted) = (path.as_str(), &self.path);
        let Some(begin) = path.len().checked_sub(wanted.len()) else {
            return false;
        };
        path.is_char_boundary(begin)
            && path[begin..].eq_ignore_ascii_case(wanted)
            && (begin == 0 || path.as_bytes()[begin - 1] == b'/')
    }
}

/// The files that may contain a concept, without those outside the index.
pub(super) fn candidates(
    index: &impl Postings,
    concepts: &[Concept],
    pattern: &Pattern,
    wanted: &[WantedPath],
    beside: &[TreePath],
) -> io::Result<Candidates> {
    let mut all = index.all();
    let numbers = all.last().map_or(0, |last| last.0 as usize + 1);
    let mut outdated: Vec<FileId> = beside.iter().filter_map(|path| index.number(path)).collect();
    outdated.sort_unstable();
    all.retain(|file| outdated.binary_search(file).is_err());
    let mut promise = Promise {
        values: vec![0.0; numbers],
        sure: Vec::new(),
    };
    let mut known = Vec::new();
    for concept in concepts {
        let mut held = vec![0.0_f64; numbers];
        let mut files: Vec<FileId> = Vec::new();
        for form in &concept.forms {
            for file in list(index, form)? {
                // A number out of range would be a bug in the index, and costs one file.
                let Some(best) = held.get_mut(file.0 as usize) else {
                    continue;
                };
                if *best == 0.0 && outdated.binary_search(&file).is_err() {
                    files.push(file);
                }
                *best = best.max(form.strength);
            }
        }
        let value = concept.weight * rarity(all.len(), files.len());
        for file in &files {
            promise.values[file.0 as usize] += value * held[file.0 as usize];
        }
        if files.len() <= RARE_FILES {
            promise.sure.extend(&files);
        }
        known.push(files);
    }
    for file in &all {
        let Some(path) = index.place(*file) else { continue };
        let (mask, fits) = pattern.in_path(path);
        for concept in (0..concepts.len()).filter(|concept| mask.has(*concept)) {
            let value = concepts[concept].weight * rarity(all.len(), known[concept].len());
            promise.values[file.0 as usize] += value * fits[concept];
        }
        if wanted.iter().any(|wanted| wanted.fits(path)) {
            promise.sure.push(*file);
        }
    }
    Ok(promise.chosen(index, &all, known, beside))
}

fn list(index: &impl Postings, form: &Form) -> io::Result<Vec<FileId>> {
    match may_hold(index, &form.text)? {
        Some(files) => Ok(files),
        None => may_name(index, &form.text),
    }
}

struct Promise {
    values: Vec<f64>,
    sure: Vec<FileId>,
}

impl Promise {
    fn chosen(
        self,
        index: &impl Postings,
        all: &[FileId],
        known: Vec<Vec<FileId>>,
        beside: &[TreePath],
    ) -> Candidates {
        let value = |file: &FileId| self.values[file.0 as usize];
        let mut chosen: Vec<FileId> = all.iter().copied().filter(|file| value(file) > 0.0).collect();
        if chosen.len() > READ_LIMIT {
            let order = |one: &FileId, other: &FileId| {
                let by_value = value(other).total_cmp(&value(one));
                by_value.then_with(|| index.place(*one).cmp(&index.place(*other)))
            };
            chosen.select_nth_unstable_by(READ_LIMIT, order);
            chosen.truncate(READ_LIMIT);
        }
        chosen.extend(self.sure);
        chosen.sort_unstable();
        chosen.dedup();
        // If all files of a concept are read, its count comes from reading them.
        let is_read = |file: &FileId| chosen.binary_search(file).is_ok();
        let known = known
            .iter()
            .map(|files| (!files.iter().all(is_read)).then_some(files.len()));
        let known = known.collect();
        let places = chosen.iter().filter_map(|file| index.place(*file).cloned());
        let mut files: Vec<TreePath> = places.collect();
        files.extend(beside.iter().cloned());
        files.sort_unstable();
        Candidates {
            files,
            of_files: all.len() + beside.len(),
            known,
        }
    }
}

/// The files with matches, when there is no index.
pub(super) fn of_masks(
    found: Vec<(TreePath, Mask)>,
    concepts: &[Concept],
    counts: &[usize],
    of_files: usize,
    wanted: &[WantedPath],
) -> Candidates {
    let value = |mask: Mask| -> f64 {
        let held = (0..concepts.len()).filter(|concept| mask.has(*concept));
        held.map(|concept| concepts[concept].weight * rarity(of_files, counts[concept]))
            .sum()
    };
    let is_sure = |path: &TreePath, mask: Mask| {
        let is_rare = |concept: usize| mask.has(concept) && counts[concept] <= RARE_FILES;
        (0..concepts.len()).any(is_rare) || wanted.iter().any(|wanted| wanted.fits(path))
    };
    let mut ranked: Vec<(f64, TreePath, Mask)> = found
        .into_iter()
        .map(|(path, mask)| (value(mask), path, mask))
        .collect();
    ranked.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let mut files = Vec::new();
    for (place, (_, path, mask)) in ranked.into_iter().enumerate() {
        if place < READ_LIMIT || is_sure(&path, mask) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Candidates {
        files,
        of_files,
        known: counts.iter().map(|count| Some(*count)).collect(),
    }
}
