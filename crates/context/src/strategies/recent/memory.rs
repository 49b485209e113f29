//! A cache of recently read histories.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::history::History;

/// How many histories are kept: one for each tree with concurrent questions. The least recently used one is dropped,
/// and is read again.
const KEPT: usize = 16;

/// A cache of recently read histories. A history belongs to a commit, so it is never out of date: another commit has
/// another history.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Guards the histories, the most recently used at the end; held to find or add one.
    kept: Mutex<VecDeque<(Key, Arc<History>)>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Key {
    root: PathBuf,
    commit: String,
}

impl Memory {
    pub(super) fn find(&self, root: &Path, commit: &str) -> Option<Arc<History>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept
            .iter()
            .position(|(key, _)| key.root == root && key.commit == commit)?;
        let found = kept.remove(place)?;
        let history = Arc::clone(&found.1);
        kept.push_back(found);
        Some(history)
    }

    /// Stores a history. The earlier history of the tree is no longer useful.
    pub(super) fn keep(&self, root: &Path, commit: &str, history: &Arc<History>) {
        let key = Key {
            root: root.to_owned(),
            commit: commit.to_owned(),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(other, _)| other.root != key.root);
        kept.push_back((key, Arc::clone(history)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_longest_is_forgotten() {
        let (memory, history) = (Memory::default(), Arc::new(History::default()));
        let root = |number: usize| PathBuf::from(format!("/{number}"));
        for number in 0..KEPT {
            memory.keep(&root(number), "a", &history);
        }
        assert!(memory.find(&root(0), "a").is_some());
        memory.keep(&root(KEPT), "a", &history);
        let left: Vec<bool> = (0..=KEPT)
            .map(|number| memory.find(&root(number), "a").is_some())
            .collect();
        let expected: Vec<bool> = (0..=KEPT).map(|number| number != 1).collect();
        assert_eq!(left, expected);
        memory.keep(&root(0), "b", &history);
        assert!(memory.find(&root(0), "a").is_none() && memory.find(&root(0), "b").is_some());
    }
}
