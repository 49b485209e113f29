//! The rules that a scan used, to check later whether they still apply.

use std::io;
use std::path::Path;

use super::sources::IgnoreSources;
use crate::stat_cache::StatKey;

#[derive(Debug)]
pub(crate) struct SeenSources {
    pub(super) sources: IgnoreSources,
    pub(super) index: SeenIndex,
}

/// What a scan saw of git's index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SeenIndex {
    /// The scan didn't read it: nothing was ignored.
    Unseen,
    /// The scan read this file, or there was no index.
    Seen(Option<StatKey>),
}

impl SeenSources {
    /// Whether the rules are still the same.
    pub(crate) fn are_current(&self, workspace: &Path) -> io::Result<bool> {
        let now = IgnoreSources::of_workspace(workspace)?;
        let is_same_index = match self.index {
            SeenIndex::Unseen => true,
            SeenIndex::Seen(seen) => now.index_now()? == seen,
        };
        Ok(is_same_index && now.says_the_same_as(&self.sources))
    }
}
