//! What a capture skips: what git would ignore in the sandbox, by the sandbox's current rules.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::{IgnoreRules, IgnoreSources, RelPath, Tree};

/// The largest `.gitignore` that is read. A larger one counts as empty, so that the files it names are carried rather
/// than lost.
const RULES_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// A workspace's ignore rules from outside its tree. They are read at the first capture that finds something, and
/// cached, so that all captures of a sandbox use the same ones.
#[derive(Debug)]
pub(super) struct Ignoring {
    workspace: PathBuf,
    sources: OnceLock<Arc<IgnoreSources>>,
}

impl Ignoring {
    pub(super) fn of(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            sources: OnceLock::new(),
        }
    }

    /// Calls `work` with the rules that decide whether a path of the tree is ignored.
    pub(super) fn during<R>(
        &self,
        tree: &Tree,
        work: impl FnOnce(&mut IgnoreRules<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let read = |directory: Option<&RelPath>| read_rules(tree, directory);
        work(&mut IgnoreRules::load(&|| self.sources(), &read))
    }

    fn sources(&self) -> io::Result<Arc<IgnoreSources>> {
        if let Some(sources) = self.sources.get() {
            return Ok(Arc::clone(sources));
        }
        let read = Arc::new(IgnoreSources::of_workspace(&self.workspace)?);
        Ok(Arc::clone(self.sources.get_or_init(|| read)))
    }
}

fn read_rules(tree: &Tree, directory: Option<&RelPath>) -> io::Result<Option<Vec<u8>>> {
    let name = ".gitignore";
    let path = match directory {
        Some(directory) => directory.join(name.as_ref()),
        None => RelPath::from_bytes(name.as_bytes()),
    };
    let Ok(path) = path else { return Ok(None) };
    match tree.read(&path, RULES_LIMIT_BYTES) {
        Ok(rules) => Ok(Some(rules)),
        // Anything that isn't a readable file has no rules, as in git.
        Err(_) => Ok(None),
    }
}
