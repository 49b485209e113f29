//! Reads candidates on several threads.

use std::time::Duration;

use kernel::{Deadline, Scope};

use super::pattern::{Mark, Pattern};
use crate::path::TreePath;
use crate::view::{View, text_of};

/// The most threads that read for one question.
const THREADS: usize = 4;
/// An extra thread pays off for this many files.
const FILES_OF_THREAD: usize = 24;

/// How long a search may run: from now until the deadline, unless its scope is cancelled.
#[derive(Clone, Copy, Debug)]
pub(in crate::strategies) struct Time<'a> {
    pub(in crate::strategies) scope: &'a Scope,
    deadline: &'a Deadline,
    whole: Option<Duration>,
}

impl<'a> Time<'a> {
    pub(in crate::strategies) fn new(scope: &'a Scope, deadline: &'a Deadline) -> Self {
        let whole = deadline.remaining();
        Self {
            scope,
            deadline,
            whole,
        }
    }

    /// Whether the search has to stop: it was cancelled, or has used this percentage of its time.
    pub(in crate::strategies) fn is_over(&self, percent: u32) -> bool {
        self.scope.is_cancelled() || self.is_used(percent)
    }

    pub(in crate::strategies) fn is_used(&self, percent: u32) -> bool {
        match (self.whole, self.deadline.remaining()) {
            (Some(whole), Some(left)) => left * 100 <= whole * 100u32.saturating_sub(percent),
            _ => false,
        }
    }
}

/// The percentage of the time after which no more files are read.
const READ_PERCENT: u32 = 95;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReadFile {
    pub(super) path: TreePath,
    pub(super) bytes: usize,
    pub(super) lines: u32,
    /// The matches, in the order of the lines.
    pub(super) marks: Vec<Mark>,
}

/// Reads files while there is time, sorted by path. Files without text are skipped, and those that `may_matter`
/// rejects: a quick check is much faster than finding all matches.
pub(super) fn read_all(
    view: &dyn View,
    pattern: &Pattern,
    files: &[TreePath],
    may_matter: &(dyn Fn(&TreePath, &[u8]) -> bool + Sync),
    time: Time<'_>,
) -> Vec<ReadFile> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (files.len() / FILES_OF_THREAD + 1).min(cores).min(THREADS);
    let read_some = |first: usize| {
        let (mut searcher, mut bytes) = (Pattern::searcher(), Vec::new());
        let mut read = Vec::new();
        for path in files.iter().skip(first).step_by(threads) {
            if time.is_over(READ_PERCENT) {
                break;
            }
            if view.read_into(path, &mut bytes).is_err() || !may_matter(path, &bytes) {
                continue;
            }
            let text = text_of(&bytes);
            // A text in memory can always be searched.
            let marks = pattern.marks(&mut searcher, &text).unwrap_or_default();
            read.push(ReadFile {
                path: path.clone(),
                bytes: text.len(),
                lines: u32::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1)
                    .unwrap_or(u32::MAX),
                marks,
            });
        }
        read
    };
    if threads == 1 {
        return read_some(0);
    }
    let mut read: Vec<ReadFile> = std::thread::scope(|threads_scope| {
        let started: Vec<_> = (0..threads)
            .map(|first| threads_scope.spawn(move || read_some(first)))
            .collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended
            .flat_map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    read.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    read
}
