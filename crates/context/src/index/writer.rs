//! Changes an index: one change at a time, on a thread that may block.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use kernel::Scope;

use super::build::{Site, build};
use super::compare::{self, Difference};
use super::extract::Extractor;
use super::manifest::Manifest;
use super::merge::Merged;
use super::part::{Content, Part, Piece};
use super::segment::Segment;
use super::snapshot::Snapshot;
use super::way::Way;
use crate::disk::Root;
use crate::path::TreePath;

/// The most files of an index. Further ones are searched without it.
const MOST_FILES: usize = 1_000_000;
/// How many files may be in memory before they are written to a segment. If the process is killed, they are read
/// again.
const MOST_PIECES: usize = 256;
/// If more files than this have changed, they are read on several threads and go straight into segments.
const MOST_AT_ONCE: usize = 64;
/// How many segments are left unmerged: a question searches each of them.
const MOST_SEGMENTS: usize = 8;
/// The approximate size of a file from memory in a segment.
const PIECE_BYTES: u64 = 4 * 1024;
/// How many deleted files are remembered. The oldest are dropped: only older plans ask for them.
const MOST_GONE: usize = 10_000;
/// An index with less than this fraction of its space left is full.
const FULL_PART: u64 = 50;

#[derive(Debug)]
pub(super) struct Writer {
    root: PathBuf,
    directory: PathBuf,
    limit_bytes: u64,
    /// Segments, then pieces. If several have a file, only the last one counts.
    parts: Vec<Part>,
    /// Files that are known to have changed and haven't been read yet.
    pending: Vec<TreePath>,
    /// Files for which there is no space.
    beyond: BTreeSet<TreePath>,
    gone: Arc<Vec<(TreePath, SystemTime)>>,
    manifest: Manifest,
}

impl Writer {
    /// Reads the index from disk. Damaged data and other formats count as missing. Also returns whether there was
    /// something.
    ///
    /// # Errors
    /// The directory can't be created.
    pub(super) fn load(root: &Path, directory: &Path, limit_bytes: u64) -> io::Result<(Self, bool)> {
        fs::create_dir_all(directory)?;
        let mut writer = Self {
            root: root.to_owned(),
            directory: directory.to_owned(),
            limit_bytes,
            parts: Vec::new(),
            pending: Vec::new(),
            beyond: BTreeSet::new(),
            gone: Arc::default(),
            manifest: Manifest::default(),
        };
        let manifest = Manifest::read(directory);
        let was_there = manifest.is_some();
        let manifest = manifest.unwrap_or_default();
        manifest.sweep(directory)?;
        let mut is_whole = was_there;
        for name in &manifest.segments {
            match Segment::open(directory, name) {
                Ok(segment) => writer.take_in(segment),
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), name, %error, "rebuilding a part of an index");
                    is_whole = false;
                }
            }
        }
        writer.manifest = manifest;
        if was_there && !is_whole {
            // Damaged segments aren't tried again.
            writer.commit()?;
        }
        Ok((writer, is_whole))
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let beside = self.pending.iter().chain(&self.beyond).cloned().collect();
        Snapshot::new(self.parts.clone(), beside, Arc::clone(&self.gone))
    }

    /// Compares the whole tree with the index. Entries of files that differ stop counting.
    ///
    /// # Errors
    /// The root can't be read, or the scope is cancelled.
    pub(super) fn compare(&mut self, scope: &Scope) -> io::Result<()> {
        let difference = compare::whole(&self.root, &self.root, &self.parts, scope)?;
        // Those that still exist are among the changed files.
        self.beyond.clear();
        self.note(difference);
        Ok(())
    }

    /// The same for some paths.
    ///
    /// # Errors
    /// The root can't be read, or the scope is cancelled.
    pub(super) fn compare_some(&mut self, paths: &BTreeSet<PathBuf>, scope: &Scope) -> io::Result<()> {
        let difference = compare::some(&self.root, paths, &self.parts, scope)?;
        self.note(difference);
        Ok(())
    }

    fn note(&mut self, difference: Difference) {
        let now = SystemTime::now();
        for path in difference.gone {
            self.kill(&path);
            self.remember_gone(path, now);
        }
        for path in &difference.changed {
            self.kill(path);
            self.beyond.remove(path);
        }
        self.pending = difference.changed;
        self.drop_dead_pieces();
    }

    /// Reads the files that were recorded as changed.
    ///
    /// # Errors
    /// The root can't be read, segments can't be written, or the scope is cancelled.
    pub(super) fn catch_up(
        &mut self,
        way: &Way,
        scope: &Scope,
        progress: &(dyn Fn(u64) + Sync),
    ) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.pending.len() <= MOST_AT_ONCE && self.room_bytes() > 0 {
            return self.read_few(scope);
        }
        let known: usize = self.parts.iter().map(|part| part.alive).sum();
        let fitting = MOST_FILES.saturating_sub(known).min(self.pending.len());
        let (fitting, beyond) = self.pending.split_at(fitting);
        let site = Site {
            root: &self.root,
            directory: &self.directory,
            room_bytes: self.room_bytes(),
            way,
        };
        let built = build(&site, fitting, scope, progress)?;
        self.beyond.extend(beyond.iter().cloned());
        self.beyond.extend(built.left);
        let new: Vec<Part> = built
            .segments
            .into_iter()
            .map(Content::Segment)
            .map(Part::new)
            .collect();
        let now = SystemTime::now();
        for path in std::mem::take(&mut self.pending) {
            // Files that existed a moment ago but couldn't be read anymore.
            let is_new = new.iter().any(|part| part.find(path.as_str()).is_some());
            if !is_new && !self.beyond.contains(&path) {
                self.remember_gone(path, now);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let pieces_at = self.pieces_at();
        self.parts.splice(pieces_at..pieces_at, new);
        self.commit()
    }

    fn read_few(&mut self, scope: &Scope) -> io::Result<()> {
        let root = Root::open(&self.root)?;
        let mut extractor = Extractor::new();
        for path in std::mem::take(&mut self.pending) {
            if scope.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match extractor.extract(&root, &path, scope) {
                Some(extracted) => self.parts.push(Part::new(Content::Piece(Piece::new(extracted)))),
                None => self.remember_gone(path, SystemTime::now()),
            }
        }
        Ok(())
    }

    /// The parts to merge now, if any.
    pub(super) fn to_merge(&self) -> Option<Vec<Part>> {
        let (segments, pieces) = self.parts.split_at(self.pieces_at());
        let size = |part: &Part| part.content.segment().map_or(0, Segment::bytes);
        let (mut dead, mut whole): (Vec<_>, Vec<_>) = segments
            .iter()
            .cloned()
            .partition(|part| part.alive * 2 < part.content.entries().len());
        whole.sort_by_key(size);
        let sizes: Vec<u64> = whole.iter().map(size).collect();
        let is_due = pieces.len() >= MOST_PIECES || !dead.is_empty() || segments.len() > MOST_SEGMENTS;
        is_due.then(|| {
            let small = pieces.len() as u64 * PIECE_BYTES + dead.iter().map(size).sum::<u64>() / 2;
            whole.truncate(how_many(&sizes, small));
            dead.extend(whole);
            dead.extend_from_slice(pieces);
            dead
        })
    }

    /// Replaces the merged parts by the result.
    ///
    /// # Errors
    /// The manifest can't be written.
    pub(super) fn take_merged(&mut self, mut merged: Merged) -> io::Result<()> {
        let mut new = merged.segment.take().map(Content::Segment).map(Part::new);
        let inputs = merged.inputs.iter().enumerate();
        for (input, before) in inputs {
            let now = self
                .parts
                .iter()
                .find(|part| Arc::ptr_eq(&part.content, &before.content));
            // Files that stopped counting in the meantime don't count in the new segment either.
            for (file, _) in before.living() {
                let still = now.is_some_and(|now| now.is_alive(file));
                if let (false, Some(to), Some(new)) = (still, merged.moved(input, file), &mut new) {
                    new.kill(to);
                }
            }
        }
        let is_input = |part: &Part| {
            let mut inputs = merged.inputs.iter();
            inputs.any(|input| Arc::ptr_eq(&input.content, &part.content))
        };
        self.parts.retain(|part| !is_input(part));
        let pieces_at = self.pieces_at();
        self.parts.splice(pieces_at..pieces_at, new);
        self.commit()
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.parts.clear();
        self.pending.clear();
        self.beyond.clear();
        self.commit()
    }

    /// Stores the list of segments, and removes those that are no longer listed.
    fn commit(&mut self) -> io::Result<()> {
        let segments = self.parts.iter().filter_map(|part| part.content.segment());
        let names = segments.map(|segment| segment.name().to_owned()).collect();
        let manifest = Manifest::new(&self.root, names);
        manifest.write(&self.directory)?;
        let before = std::mem::replace(&mut self.manifest, manifest);
        for name in before.segments {
            if !self.manifest.segments.contains(&name) {
                // If it can't be removed now, it is removed when the index is opened again.
                drop(fs::remove_file(self.directory.join(name)));
            }
        }
        Ok(())
    }

    /// Adds a segment that existed before. Its files stop counting in older ones.
    fn take_in(&mut self, segment: Segment) {
        let part = Part::new(Content::Segment(segment));
        for entry in part.content.entries() {
            self.kill(&entry.path);
        }
        self.parts.push(part);
    }

    fn kill(&mut self, path: &TreePath) {
        for part in &mut self.parts {
            if let Some(file) = part.find(path.as_str()) {
                part.kill(file);
            }
        }
    }

    fn drop_dead_pieces(&mut self) {
        self.parts
            .retain(|part| part.alive > 0 || part.content.segment().is_some());
    }

    fn remember_gone(&mut self, path: TreePath, time: SystemTime) {
        let gone = Arc::make_mut(&mut self.gone);
        if gone.len() == MOST_GONE {
            gone.drain(..MOST_GONE / 2);
        }
        gone.push((path, time));
    }

    fn pieces_at(&self) -> usize {
        self.parts
            .partition_point(|part| part.content.segment().is_some())
    }

    fn room_bytes(&self) -> u64 {
        let segments = self.parts.iter().filter_map(|part| part.content.segment());
        let used: u64 = segments.map(Segment::bytes).sum();
        let room = self.limit_bytes.saturating_sub(used);
        if room < self.limit_bytes / FULL_PART {
            0
        } else {
            room
        }
    }
}

/// How many segments, smallest first, to merge with others of this size: enough that few are left, but no segment that
/// is much larger than all before it, so that files aren't rewritten again and again.
fn how_many(sizes: &[u64], mut small: u64) -> usize {
    let mut taken = 0;
    while let Some(size) = sizes.get(taken)
        && (*size <= 2 * small || sizes.len() - taken >= MOST_SEGMENTS)
    {
        small += size;
        taken += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::how_many;

    #[test]
    fn what_is_much_larger_is_left_alone_as_long_as_there_are_few() {
        let cases: [(&[u64], u64, usize); 7] = [
            (&[], 5, 0),
            (&[100], 5, 0),
            (&[10, 30, 90, 1000], 5, 3),
            (&[10, 30, 91, 1000], 5, 2),
            (&[15; 12], 0, 12),
            (&[1, 2, 4, 8, 16, 32, 64, 128, 1000], 0, 8),
            (
                &[
                    1,
                    10,
                    100,
                    1000,
                    10_000,
                    100_000,
                    1_000_000,
                    10_000_000,
                    100_000_000,
                ],
                0,
                2,
            ),
        ];
        for (sizes, small, expected) in cases {
            assert_eq!(how_many(sizes, small), expected, "{sizes:?} {small}");
        }
    }
}
