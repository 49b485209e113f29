//! Reads and extracts many files on several threads, and writes them to segments.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use kernel::Scope;

use super::collect::Collector;
use super::extract::Extractor;
use super::segment::Segment;
use super::way::{Turn, Way};
use crate::disk::Root;
use crate::path::TreePath;

/// How many threads build. Parsing is most of the work, and the machine has other work to do.
const MOST_BUILDERS: usize = 4;
/// How many files a thread takes at a time: few, so that all end at about the same time.
const FILES_AT_A_TIME: usize = 16;
/// Files from this size on are processed one at a time: the syntax tree of such a file has forty times its size,
/// and all threads might reach one at once.
const LARGE_BYTES: i64 = 256 * 1024;

#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) segments: Vec<Segment>,
    /// Files for which there was no space, in order.
    pub(super) left: Vec<TreePath>,
}

#[derive(Debug)]
pub(super) struct Site<'site> {
    pub(super) root: &'site Path,
    pub(super) directory: &'site Path,
    pub(super) room_bytes: u64,
    pub(super) way: &'site Way,
}

/// Extracts files, which come in order, and reports to `progress` how many are done. It blocks.
///
/// # Errors
/// The root can't be read, a segment can't be written, or the scope is cancelled.
pub(super) fn build(
    site: &Site<'_>,
    files: &[TreePath],
    scope: &Scope,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Built> {
    let root = Root::open(site.root)?;
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_BUILDERS);
    let work = Work {
        files,
        threads,
        large: Mutex::new(()),
        state: Mutex::new(WorkState {
            next: 0,
            room_bytes: site.room_bytes,
            built: Built::default(),
        }),
    };
    let results: Vec<io::Result<()>> = thread::scope(|threads_scope| {
        let run = || work.run(&root, site, scope, progress);
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                thread::Builder::new()
                    .name("index".to_owned())
                    .spawn_scoped(threads_scope, run)
                    .ok()
            })
            .collect();
        let mut results = vec![run()];
        for other in others {
            let panicked = || Err(io::Error::other("a thread that builds an index panicked"));
            results.push(other.join().unwrap_or_else(|_| panicked()));
        }
        results
    });
    results.into_iter().collect::<io::Result<()>>()?;
    if scope.is_cancelled() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let mut built = work
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .built;
    built.left.sort_unstable();
    Ok(built)
}

struct Work<'files> {
    files: &'files [TreePath],
    threads: usize,
    /// Limits memory: a thread holds it while it processes a large file.
    large: Mutex<()>,
    /// Which files are next, and the results so far.
    state: Mutex<WorkState>,
}

struct WorkState {
    next: usize,
    room_bytes: u64,
    built: Built,
}

impl<'files> Work<'files> {
    fn run(
        &self,
        root: &Root,
        site: &Site<'_>,
        scope: &Scope,
        progress: &(dyn Fn(u64) + Sync),
    ) -> io::Result<()> {
        let mut extractor = Extractor::new();
        let mut collector = Collector::new(self.threads);
        let mut turn = Turn::default();
        while let Some((files, done)) = self.take() {
            progress(done);
            site.way.give(&mut turn, scope);
            for path in files {
                if scope.is_cancelled() {
                    return Ok(());
                }
                let _alone = self.alone_if_large(root, path);
                if let Some(extracted) = extractor.extract(root, path, scope) {
                    collector.add(extracted);
                }
                if collector.is_full() {
                    self.put(collector.write(site.directory)?);
                }
            }
        }
        if !collector.is_empty() && !scope.is_cancelled() {
            self.put(collector.write(site.directory)?);
        }
        Ok(())
    }

    fn alone_if_large(&self, root: &Root, path: &TreePath) -> Option<MutexGuard<'_, ()>> {
        let is_large = root.stat(path).is_some_and(|stat| stat.st_size >= LARGE_BYTES);
        is_large.then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next files, and how many were taken before them. When there is no space left, the rest stays.
    fn take(&self) -> Option<(&'files [TreePath], u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = (state.next, self.files.len().min(state.next + FILES_AT_A_TIME));
        if state.room_bytes == 0 {
            state.built.left.extend_from_slice(&self.files[from..]);
            state.next = self.files.len();
            return None;
        }
        state.next = to;
        (from < to).then(|| (&self.files[from..to], from as u64))
    }

    fn put(&self, segment: Segment) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.room_bytes = state.room_bytes.saturating_sub(segment.bytes());
        state.built.segments.push(segment);
    }
}
