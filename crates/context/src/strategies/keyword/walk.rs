//! The files worth reading if there is no index: every file is searched.

use std::io;
use std::sync::{Mutex, PoisonError};

use grep_searcher::Searcher;

use super::candidates::{Candidates, WantedPath, of_masks};
use super::concepts::Concept;
use super::pattern::{Mask, Pattern};
use super::reading::Time;
use crate::path::TreePath;
use crate::view::View;

/// The most matching files that are kept. When there are twice as many, the less promising half is dropped.
const FOUND_LIMIT: usize = 1 << 15;
/// The percentage of the time after which the search stops with what it has.
const WALK_PERCENT: u32 = 80;

#[derive(Default)]
struct WalkedFiles {
    files: Vec<(TreePath, Mask)>,
    counts: Vec<usize>,
    of_files: usize,
}

struct Tools {
    searcher: Searcher,
    bytes: Vec<u8>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            searcher: Pattern::searcher(),
            bytes: Vec::new(),
        }
    }
}

impl Tools {
    /// The concepts in a file; `None` if it has no text.
    fn mask(&mut self, view: &dyn View, path: &TreePath, pattern: &Pattern) -> Option<Mask> {
        view.read_into(path, &mut self.bytes).ok()?;
        if !pattern.may_be_in(&self.bytes) {
            return Some(Mask::default());
        }
        // A text in memory can always be searched.
        Some(pattern.mask(&mut self.searcher, &self.bytes).unwrap_or_default())
    }
}

/// The matching files, as far as there was time to search.
pub(super) fn walk(
    view: &dyn View,
    concepts: &[Concept],
    pattern: &Pattern,
    wanted: &[WantedPath],
    time: Time<'_>,
) -> io::Result<Candidates> {
    // Guards the results so far; the threads of the walk add to them one file at a time.
    let found = Mutex::new(WalkedFiles {
        counts: vec![0; concepts.len()],
        ..WalkedFiles::default()
    });
    // Guards unused tools; there are as many as threads in the walk.
    let idle: Mutex<Vec<Tools>> = Mutex::default();
    view.walk(time.scope, &|path| {
        if time.is_over(WALK_PERCENT) {
            return false;
        }
        let tools = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut tools = tools.unwrap_or_default();
        let mask = tools.mask(view, &path, pattern);
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(tools);
        let Some(mask) = mask else {
            return true;
        };
        let in_path = pattern.in_path(&path).0;
        let is_wanted = wanted.iter().any(|wanted| wanted.fits(&path));
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.of_files += 1;
        for concept in (0..concepts.len()).filter(|concept| mask.has(*concept)) {
            found.counts[concept] += 1;
        }
        let mask = Mask(mask.0 | in_path.0);
        if mask != Mask::default() || is_wanted {
            found.files.push((path, mask));
        }
        if found.files.len() >= 2 * FOUND_LIMIT {
            keep_promising(&mut found.files, concepts);
        }
        true
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(of_masks(
        found.files,
        concepts,
        &found.counts,
        found.of_files,
        wanted,
    ))
}

/// Drops the least promising ones. The order is total, so the result doesn't depend on the order of arrival.
fn keep_promising(files: &mut Vec<(TreePath, Mask)>, concepts: &[Concept]) {
    let value = |mask: Mask| -> f64 {
        let held = concepts.iter().enumerate().filter(|(place, _)| mask.has(*place));
        held.map(|(_, concept)| concept.weight).sum()
    };
    files.sort_by(|one, other| {
        value(other.1)
            .total_cmp(&value(one.1))
            .then_with(|| one.0.cmp(&other.0))
    });
    files.truncate(FOUND_LIMIT);
}
