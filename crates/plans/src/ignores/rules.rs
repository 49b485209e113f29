//! What is ignored in a tree whose `.gitignore` files the caller reads.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::level::{Level, Verdict};
use super::sources::IgnoreSources;
use crate::path::RelPath;

/// Reads the `.gitignore` of a directory of a tree, the root if it is none; `None` if there is no such file.
type ReadRules<'a> = &'a dyn Fn(Option<&RelPath>) -> io::Result<Option<Vec<u8>>>;

/// What is ignored in a tree, for paths in any order. A `.gitignore` is read when it is needed first, and once.
pub struct IgnoreRules<'a> {
    sources: Arc<IgnoreSources>,
    read: ReadRules<'a>,
    /// The rules of the directories seen so far; nothing for one that is ignored whole. The root is `None`.
    levels: HashMap<Option<RelPath>, Option<Arc<Level>>>,
}

impl<'a> IgnoreRules<'a> {
    /// The rules for a tree.
    #[must_use]
    pub fn load(sources: Arc<IgnoreSources>, read: ReadRules<'a>) -> Self {
        Self {
            sources,
            read,
            levels: HashMap::new(),
        }
    }

    /// Whether a path is ignored. What is tracked and what `.worktreeinclude` names is not, nor is a directory that such a
    /// thing is in; what else is in that directory is.
    ///
    /// # Errors
    /// A `.gitignore` or the index cannot be read.
    pub fn is_ignored(&mut self, path: &RelPath, is_directory: bool) -> io::Result<bool> {
        Ok(match self.level(path.parent())? {
            Some(level) => level.judge(&self.sources, path, is_directory)? == Verdict::Ignored,
            None => true,
        })
    }

    fn level(&mut self, directory: Option<RelPath>) -> io::Result<Option<Arc<Level>>> {
        if let Some(level) = self.levels.get(&directory) {
            return Ok(level.clone());
        }
        let level = match &directory {
            None => Some(Level::root((self.read)(None)?.as_deref(), &self.sources)),
            Some(path) => match self.level(path.parent())? {
                Some(above) => self.below(&above, path)?,
                None => None,
            },
        };
        self.levels.insert(directory, level.clone());
        Ok(level)
    }

    fn below(&self, above: &Arc<Level>, directory: &RelPath) -> io::Result<Option<Arc<Level>>> {
        let verdict = above.judge(&self.sources, directory, true)?;
        let rules = match verdict {
            Verdict::Ignored => return Ok(None),
            Verdict::Part => (self.read)(Some(directory))?,
            Verdict::Included | Verdict::Entered => None,
        };
        let level = Level::below(above, directory, verdict, rules.as_deref(), &self.sources);
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
