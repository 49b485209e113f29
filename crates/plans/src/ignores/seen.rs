//! The rules that a scan went by, to tell later whether they still hold.

use std::io;
use std::path::Path;

use super::sources::IgnoreSources;
use crate::stat_cache::StatKey;

/// Rules as a scan went by them.
#[derive(Debug)]
pub(crate) struct SeenSources {
    pub(super) sources: IgnoreSources,
    pub(super) index: SeenIndex,
}

/// What a scan saw of git's index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SeenIndex {
    /// It did not look: nothing was ignored.
    Unseen,
    /// It had what was in this file, or there was none.
    Seen(Option<StatKey>),
}

impl SeenSources {
    /// Whether the rules are the same now.
    pub(crate) fn are_current(&self, workspace: &Path) -> io::Result<bool> {
        let now = IgnoreSources::of_workspace(workspace)?;
        let is_same_index = match self.index {
            SeenIndex::Unseen => true,
            SeenIndex::Seen(seen) => now.index_now()? == seen,
        };
        Ok(is_same_index && now.says_the_same_as(&self.sources))
    }
}
