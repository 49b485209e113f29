//! What is ignored in a tree, with `.gitignore` files that the caller reads.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::level::{IgnoreMatch, Level};
use super::sources::IgnoreSources;
use crate::RelPath;

/// Reads the `.gitignore` of a directory, or of the root for `None`; returns `None` if there is no such file.
type ReadRules<'a> = &'a dyn Fn(Option<&RelPath>) -> io::Result<Option<Vec<u8>>>;

/// Finds the rules from outside the tree. That asks git, which takes milliseconds.
type ReadSources<'a> = &'a dyn Fn() -> io::Result<Arc<IgnoreSources>>;

/// What is ignored in a tree, for paths in any order. Each rules file is read once, when it is first needed.
pub struct IgnoreRules<'a> {
    sources: Option<Arc<IgnoreSources>>,
    read_sources: ReadSources<'a>,
    read: ReadRules<'a>,
    /// The rules of the directories seen so far; `None` for one that is ignored as a whole. The root has the
    /// key `None`.
    levels: HashMap<Option<RelPath>, Option<Arc<Level>>>,
}

impl<'a> IgnoreRules<'a> {
    #[must_use]
    pub fn load(read_sources: ReadSources<'a>, read: ReadRules<'a>) -> Self {
        Self {
            sources: None,
            read_sources,
            read,
            levels: HashMap::new(),
        }
    }

    /// Whether a path is ignored. Tracked paths and those that `.worktreeinclude` names are not, and neither are the
    /// directories they are in; everything else in such a directory is.
    ///
    /// # Errors
    /// A `.gitignore`, the index or the rules outside the tree can't be read.
    pub fn is_ignored(&mut self, path: &RelPath, is_directory: bool) -> io::Result<bool> {
        let sources = self.sources()?;
        Ok(match self.level(path.parent(), &sources)? {
            Some(level) => level.judge(&sources, path, is_directory)? == IgnoreMatch::Ignored,
            None => true,
        })
    }

    fn sources(&mut self) -> io::Result<Arc<IgnoreSources>> {
        let sources = match self.sources.take() {
            Some(sources) => sources,
            None => (self.read_sources)()?,
        };
        Ok(Arc::clone(self.sources.insert(sources)))
    }

    fn level(
        &mut self,
        directory: Option<RelPath>,
        sources: &IgnoreSources,
    ) -> io::Result<Option<Arc<Level>>> {
        if let Some(level) = self.levels.get(&directory) {
            return Ok(level.clone());
        }
        let level = match &directory {
            None => Some(Level::root((self.read)(None)?.as_deref(), sources)),
            Some(path) => match self.level(path.parent(), sources)? {
                Some(above) => self.below(&above, path, sources)?,
                None => None,
            },
        };
        self.levels.insert(directory, level.clone());
        Ok(level)
    }

    fn below(
        &self,
        above: &Arc<Level>,
        directory: &RelPath,
        sources: &IgnoreSources,
    ) -> io::Result<Option<Arc<Level>>> {
        let ignore_match = above.judge(sources, directory, true)?;
        let rules = match ignore_match {
            IgnoreMatch::Ignored => return Ok(None),
            IgnoreMatch::Part => (self.read)(Some(directory))?,
            IgnoreMatch::Included | IgnoreMatch::Entered => None,
        };
        let level = Level::below(above, directory, ignore_match, rules.as_deref(), sources);
        Ok(Some(level))
    }
}

impl fmt::Debug for IgnoreRules<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IgnoreRules")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}
