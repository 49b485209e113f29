//! The ignore rules of one directory.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bstr::ByteSlice;
use gix_ignore::search::pattern_matching_relative_path;

use super::sources::{IgnoreSources, RuleList, rule_list};
use crate::RelPath;

/// The rules that apply in one directory: its own, and those above.
#[derive(Debug)]
pub(crate) struct Level {
    above: Option<Arc<Level>>,
    list: Option<RuleList>,
    standing: IgnoreMatch,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IgnoreMatch {
    Part,
    /// Ignored, but included anyway. For a directory, this covers everything in it.
    Included,
    /// An ignored directory that may contain something that is part of the tree.
    Entered,
    Ignored,
}

impl Level {
    /// The rules of the root, with the content of its `.gitignore`.
    pub(crate) fn root(gitignore: Option<&[u8]>, sources: &IgnoreSources) -> Arc<Self> {
        Arc::new(Self {
            above: None,
            list: gitignore.map(|bytes| rule_list(bytes, &sources.prefix)),
            standing: IgnoreMatch::Part,
        })
    }

    /// The rules of a subdirectory, given this level's verdict on it.
    pub(crate) fn below(
        above: &Arc<Self>,
        directory: &RelPath,
        ignore_match: IgnoreMatch,
        gitignore: Option<&[u8]>,
        sources: &IgnoreSources,
    ) -> Arc<Self> {
        // Git doesn't look for rules inside ignored directories.
        let gitignore = gitignore.filter(|_| ignore_match == IgnoreMatch::Part);
        let base = || [&sources.prefix, directory.as_bytes(), b"/"].concat();
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            list: gitignore.map(|bytes| rule_list(bytes, &base())),
            standing: ignore_match,
        })
    }

    pub(super) fn list(&self) -> Option<&RuleList> {
        self.list.as_ref()
    }

    /// Decides about an entry of this directory.
    pub(crate) fn judge(
        &self,
        sources: &IgnoreSources,
        path: &RelPath,
        is_directory: bool,
    ) -> io::Result<IgnoreMatch> {
        let in_repository = if sources.prefix.is_empty() {
            Cow::Borrowed(path.as_bytes())
        } else {
            Cow::Owned([&sources.prefix, path.as_bytes()].concat())
        };
        let stands_free = self.standing == IgnoreMatch::Part;
        if stands_free && !self.matches(sources, &in_repository, is_directory) {
            return Ok(IgnoreMatch::Part);
        }
        let include = sources.include.as_ref();
        let is_included = include
            .and_then(|include| include.says(path.as_bytes(), is_directory, sources.case))
            .unwrap_or(self.standing == IgnoreMatch::Included);
        if is_included {
            return Ok(IgnoreMatch::Included);
        }
        if let Some(tracked) = sources.tracked()? {
            if tracked.contains(&in_repository) {
                // A tracked file, or a submodule.
                return Ok(IgnoreMatch::Part);
            }
            if is_directory && tracked.has_below(&in_repository) {
                return Ok(IgnoreMatch::Entered);
            }
        }
        if is_directory && include.is_some_and(|include| include.leads_into(path.as_bytes())) {
            return Ok(IgnoreMatch::Entered);
        }
        Ok(IgnoreMatch::Ignored)
    }

    /// The result of the last pattern that matches, with the nearest rules file first.
    fn matches(&self, sources: &IgnoreSources, path: &[u8], is_directory: bool) -> bool {
        let name_at = path.rfind_byte(b'/').map(|slash| slash + 1);
        let levels = std::iter::successors(Some(self), |level| level.above.as_deref());
        levels
            .filter_map(|level| level.list.as_ref())
            .chain(sources.lists.iter().rev())
            .find_map(|list| {
                pattern_matching_relative_path(
                    list,
                    path.as_bstr(),
                    name_at,
                    Some(is_directory),
                    sources.case,
                )
            })
            .is_some_and(|found| !found.pattern.is_negative())
    }
}
