//! Which files two open plans both touch, and whether the plans would conflict.
//!
//! This runs while the agents are still working, so it has to be fast: the diff of a file against its base is computed
//! once, however many plans it is compared with.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use eventlog::BlobId;
use gix_imara_diff::Hunk;

use crate::merge::{FileEntry, FileMerge, Merge, MergeFiles, line_changes, regions, text_of};
use crate::{Change, ContentSink, Contents, Entry, MergeDriver, Ours, RelPath, TextMerge};

/// How many diffs are cached: a hundred plans with a hundred files each, in about a megabyte. When the cache is full,
/// it is cleared, and diffs are computed again as needed.
const DIFFERENCE_LIMIT: usize = 16_384;
/// How many outcomes are cached, for three contents each, in the same way.
const OUTCOME_LIMIT: usize = 65_536;
/// How much text is cached. A file that many plans share is read once. When the cache is full, it is cleared.
const TEXT_LIMIT: u64 = 16 * 1024 * 1024;
/// The maximum number of lines reported for a file. It is a warning, not a report.
const LINE_LIMIT: usize = 64;

/// A file that two plans touch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OverlapPath {
    pub path: RelPath,
    /// Whether the plans would conflict if both were applied, in at least one order.
    pub conflicts: bool,
    /// The conflicting lines in the first plan's file, from 1.
    pub first_lines: Vec<u64>,
    /// The conflicting lines in the second plan's file.
    pub second_lines: Vec<u64>,
}

/// Compares plans, and caches the results.
#[derive(Debug, Default)]
pub struct OverlapDetector {
    /// How one content differs from another; `None` if one isn't text.
    differences: HashMap<(BlobId, BlobId), Option<Arc<[Hunk]>>>,
    /// The result of merging base, first and second.
    outcomes: HashMap<[BlobId; 3], FileComparison>,
    texts: Texts,
}

/// Cached texts, if they are small.
#[derive(Debug, Default)]
struct Texts {
    known: HashMap<BlobId, Bytes>,
    bytes: u64,
}

struct Remembered<'a> {
    texts: &'a Texts,
    contents: &'a dyn Contents,
}

impl Contents for Remembered<'_> {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        match self.texts.known.get(&id) {
            Some(known) => Ok(known.clone()),
            None => self.contents.get(id),
        }
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        self.contents.copy_to(id, to)
    }
}

impl Texts {
    /// Reads files that aren't cached yet, all at once, as far as they fit. If that fails, none are cached: each is
    /// read alone when it is needed, which reports the error.
    fn fetch(&mut self, mut files: Vec<FileEntry>, contents: &dyn Contents) {
        let mut seen = HashSet::new();
        files.retain(|file| !self.known.contains_key(&file.hash) && seen.insert(file.hash));
        let wanted_bytes: u64 = files.iter().map(|file| file.size).sum();
        if self.bytes + wanted_bytes > TEXT_LIMIT {
            *self = Self::default();
        }
        let mut bytes = self.bytes;
        files.retain(|file| {
            let has_room = bytes + file.size <= TEXT_LIMIT;
            bytes += if has_room { file.size } else { 0 };
            has_room
        });
        let ids: Vec<BlobId> = files.iter().map(|file| file.hash).collect();
        if let Ok(texts) = contents.get_all(&ids) {
            self.bytes = bytes;
            self.known.extend(ids.into_iter().zip(texts));
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum FileComparison {
    NotText,
    /// The lines of both sides where they conflict; empty if they don't.
    Text(Arc<[(u64, u64)]>),
}

impl OverlapDetector {
    /// The paths that two plans both touch, in path order. Each list has at most one change per path, as
    /// [`fold`](crate::fold) returns it.
    ///
    /// Both plans are assumed to have the same base. For a file that started with different contents, the result is
    /// what the second plan would find with the first applied.
    pub fn compare(
        &mut self,
        first: &[Change],
        second: &[Change],
        contents: &dyn Contents,
    ) -> io::Result<Vec<OverlapPath>> {
        let mut found = self.directed(first, second, contents)?;
        // Only renames make the order matter.
        if first.iter().chain(second).any(|change| change.from.is_some()) {
            for (path, other) in self.directed(second, first, contents)? {
                let other = OverlapPath {
                    first_lines: other.second_lines,
                    second_lines: other.first_lines,
                    ..other
                };
                match found.get(&path) {
                    Some(known) if known.conflicts || !other.conflicts => {}
                    _ => drop(found.insert(path, other)),
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// What the second plan would find with the first applied.
    fn directed(
        &mut self,
        first: &[Change],
        second: &[Change],
        contents: &dyn Contents,
    ) -> io::Result<BTreeMap<RelPath, OverlapPath>> {
        let (applied, files) = (Applied::of(first), files_of(second));
        let mut texts = std::mem::take(&mut self.texts);
        texts.fetch(self.unknown(&applied, second), contents);
        let contents = &Remembered {
            texts: &texts,
            contents,
        };
        let mut found = BTreeMap::new();
        let clash = |path: RelPath| OverlapPath {
            path,
            conflicts: true,
            first_lines: Vec::new(),
            second_lines: Vec::new(),
        };
        for change in first.iter().filter(|change| change.after.is_some()) {
            if change
                .path
                .ancestors()
                .any(|directory| files.contains(&directory))
            {
                found.insert(change.path.clone(), clash(change.path.clone()));
            }
        }
        for change in second {
            if change.after.is_some() && applied.is_below_file(&change.path) {
                found.insert(change.path.clone(), clash(change.path.clone()));
                continue;
            }
            let Some(path) = applied.shared(change) else {
                continue;
            };
            let tree = Base {
                applied: &applied,
                change,
            };
            let mut files = Files {
                overlaps: self,
                contents,
                lines: Arc::default(),
            };
            let mut merge = Merge::new(&tree, &mut files);
            merge.add(change)?;
            let conflicts = merge.has_conflicts();
            let lines = if conflicts { files.lines } else { Arc::default() };
            let overlap = OverlapPath {
                path: path.clone(),
                conflicts,
                first_lines: lines.iter().map(|(line, _)| *line).collect(),
                second_lines: lines.iter().map(|(_, line)| *line).collect(),
            };
            found.insert(path.clone(), overlap);
        }
        self.texts = texts;
        Ok(found)
    }

    /// The files of both plans, and of their base, that have to be read to determine how they merge.
    fn unknown(&self, applied: &Applied<'_>, second: &[Change]) -> Vec<FileEntry> {
        let mut unknown = Vec::new();
        for change in second {
            let Some(now) = applied.shared(change).and_then(|path| applied.paths.get(path)) else {
                continue;
            };
            let sides = [change.before.as_ref(), *now, change.after.as_ref()];
            if let [Some(base), Some(ours), Some(theirs)] = sides.map(|side| side.and_then(FileEntry::of)) {
                let key = [base, ours, theirs].map(|file| file.hash);
                let differ = key[0] != key[1] && key[1] != key[2] && key[0] != key[2];
                if differ && !self.outcomes.contains_key(&key) {
                    unknown.extend([base, ours, theirs]);
                }
            }
        }
        unknown
    }

    fn difference(
        &mut self,
        before: BlobId,
        after: FileEntry,
        text: impl FnOnce() -> io::Result<Option<Bytes>>,
        contents: &dyn Contents,
    ) -> io::Result<Option<Arc<[Hunk]>>> {
        if let Some(known) = self.differences.get(&(before, after.hash)) {
            return Ok(known.clone());
        }
        let texts = match text()? {
            Some(before) => text_of(after.hash, after.size, contents)?.map(|after| (before, after)),
            None => None,
        };
        let hunks = texts.map(|(before, after)| line_changes(&before, &after).into());
        if self.differences.len() >= DIFFERENCE_LIMIT {
            self.differences.clear();
        }
        self.differences.insert((before, after.hash), hunks.clone());
        Ok(hunks)
    }
}

/// The state of the paths that a plan touched.
struct Applied<'a> {
    paths: HashMap<&'a RelPath, Option<&'a Entry>>,
    moved: HashMap<BlobId, &'a RelPath>,
    files: HashSet<&'a RelPath>,
}

impl<'a> Applied<'a> {
    fn of(changes: &'a [Change]) -> Self {
        let from = changes
            .iter()
            .filter_map(|change| Some((change.from.as_ref()?, None)));
        let moved = changes.iter().filter(|change| change.from.is_some());
        let content = |change: &'a Change| Some((change.before.as_ref()?.content()?, &change.path));
        Self {
            paths: from
                .chain(changes.iter().map(|change| (&change.path, change.after.as_ref())))
                .collect(),
            moved: moved.filter_map(content).collect(),
            files: files_of(changes),
        }
    }

    fn is_below_file(&self, path: &RelPath) -> bool {
        !self.files.is_empty() && path.ancestors().any(|directory| self.files.contains(&directory))
    }

    /// The path that another plan's change has in common with it; `None` if both only create the same directory.
    fn shared<'b>(&self, change: &'b Change) -> Option<&'b RelPath> {
        let is_file = |entry: Option<&Entry>| entry.is_some_and(|entry| !entry.is_directory());
        let touched = [Some(&change.path), change.from.as_ref()];
        touched.into_iter().flatten().find(|path| {
            self.paths.get(path).is_some_and(|now| {
                is_file(*now) || is_file(change.before.as_ref()) || is_file(change.after.as_ref())
            })
        })
    }
}

/// The paths that will have something other than a directory, and had nothing or a directory before.
fn files_of(changes: &[Change]) -> HashSet<&RelPath> {
    let is_file = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
    let new = changes.iter().filter(|change| is_file(&change.after));
    new.filter(|change| change.from.is_some() || !is_file(&change.before))
        .map(|change| &change.path)
        .collect()
}

/// The base of a change, with another plan applied to it.
struct Base<'a> {
    applied: &'a Applied<'a>,
    change: &'a Change,
}

impl Ours for Base<'_> {
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>> {
        let old_path = self.change.from.as_ref().unwrap_or(&self.change.path);
        Ok(match self.applied.paths.get(path) {
            Some(entry) => entry.cloned(),
            None if path == old_path => self.change.before.clone(),
            None => None,
        })
    }

    fn has_others(&self, _: &RelPath, _: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
        Ok(false)
    }

    fn find(&self, content: BlobId) -> Option<RelPath> {
        self.applied.moved.get(&content).map(|path| (*path).clone())
    }
}

/// Determines whether files can be merged, without merging them.
struct Files<'a> {
    overlaps: &'a mut OverlapDetector,
    contents: &'a dyn Contents,
    lines: Arc<[(u64, u64)]>,
}

impl Files<'_> {
    fn comparison(
        &mut self,
        base: Option<FileEntry>,
        ours: FileEntry,
        theirs: FileEntry,
    ) -> io::Result<FileComparison> {
        let contents = self.contents;
        let empty = BlobId::from_bytes(*blake3::hash(b"").as_bytes());
        let base_id = base.map_or(empty, |base| base.hash);
        let key = [base_id, ours.hash, theirs.hash];
        if let Some(known) = self.overlaps.outcomes.get(&key) {
            return Ok(known.clone());
        }
        let base_text = || match base {
            Some(base) => text_of(base.hash, base.size, contents),
            None => Ok(Some(Bytes::new())),
        };
        let by_ours = self.overlaps.difference(base_id, ours, base_text, contents)?;
        let by_theirs = self.overlaps.difference(base_id, theirs, base_text, contents)?;
        let comparison = match by_ours.zip(by_theirs) {
            Some((by_ours, by_theirs)) => {
                FileComparison::Text(conflicts([&by_ours, &by_theirs], [ours, theirs], contents)?)
            }
            None => FileComparison::NotText,
        };
        if self.overlaps.outcomes.len() >= OUTCOME_LIMIT {
            self.overlaps.outcomes.clear();
        }
        self.overlaps.outcomes.insert(key, comparison.clone());
        Ok(comparison)
    }
}

impl MergeFiles for Files<'_> {
    fn merge(
        &mut self,
        base: Option<FileEntry>,
        ours: FileEntry,
        theirs: FileEntry,
        driver: MergeDriver,
    ) -> io::Result<FileMerge> {
        Ok(match self.comparison(base, ours, theirs)? {
            FileComparison::NotText => FileMerge::NotText,
            FileComparison::Text(lines) if lines.is_empty() || driver == MergeDriver::Union => {
                FileMerge::Text(TextMerge::Clean(Vec::new()))
            }
            FileComparison::Text(lines) => {
                self.lines = lines;
                FileMerge::Text(TextMerge::Conflicted(Vec::new()))
            }
        })
    }
}

/// Where two sides conflict, in lines of both. The texts are only read if both changed one region.
fn conflicts(
    hunks: [&[Hunk]; 2],
    sides: [FileEntry; 2],
    contents: &dyn Contents,
) -> io::Result<Arc<[(u64, u64)]>> {
    let mut shared = regions(hunks[0], hunks[1]);
    shared.retain(|region| region.is_by_both());
    if shared.is_empty() {
        return Ok(Arc::default());
    }
    let texts = [contents.get(sides[0].hash)?, contents.get(sides[1].hash)?];
    let lines = texts
        .each_ref()
        .map(|text| text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
    shared.retain(|region| lines[0][region.ours.clone()] != lines[1][region.theirs.clone()]);
    let line = |at: usize| at as u64 + 1;
    let found = shared.iter().take(LINE_LIMIT);
    Ok(found
        .map(|region| (line(region.ours.start), line(region.theirs.start)))
        .collect())
}
