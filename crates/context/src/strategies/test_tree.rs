//! A tree in memory and an index of it, for tests of strategies based on names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{CancellationToken, Scope};

use super::names::NameIndex;
use crate::index::{FileId, Key};
use crate::outline::{Outline, outline};
use crate::path::TreePath;
use crate::query::{Query, parts_of};
use crate::strategy::{Ask, Hit, SearchTree};
use crate::view::{FileText, NotText, Since, View};

#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<TreePath, FileText>);

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(name, text)| (path(name), FileText::from(*text)));
        Self(files.collect())
    }

    /// A question about it, without an index.
    pub(super) fn ask(&self, query: &str, focus: &[&str]) -> Ask {
        Ask {
            query: Query::parse(query),
            focus: focus.iter().map(|name| path(name)).collect(),
            searched: SearchTree {
                root: PathBuf::from("/tree"),
                view: Arc::new(self.clone()),
                index: None,
                beside_index: Arc::from([]),
            },
            most_hits: 100,
        }
    }
}

impl View for Tree {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        self.0.get(path).cloned().ok_or(NotText::Missing)
    }

    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        for path in self.0.keys() {
            if scope.is_cancelled() || !visit(path.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn since(&self) -> Since {
        Since::default()
    }
}

/// An index of such a tree. The numbering of its files may be reversed.
#[derive(Debug)]
pub(super) struct Known {
    files: Vec<(TreePath, Option<Outline>)>,
    keys: BTreeMap<Key, BTreeSet<FileId>>,
}

impl Known {
    pub(super) fn of(tree: &Tree) -> Self {
        Self::in_order(tree.0.iter())
    }

    pub(super) fn turned_around(tree: &Tree) -> Self {
        Self::in_order(tree.0.iter().rev())
    }

    fn in_order<'tree>(files: impl Iterator<Item = (&'tree TreePath, &'tree FileText)>) -> Self {
        let scope = CancellationToken::new().scope();
        let mut keys: BTreeMap<Key, BTreeSet<FileId>> = BTreeMap::new();
        let mut known = Vec::new();
        for (file, (path, text)) in (0..).map(FileId).zip(files) {
            let found = outline(path, text, &scope);
            for definition in found.iter().flat_map(|found| &found.definitions) {
                let parts = parts_of(&definition.name);
                let parts = parts.iter().map(|part| Key::part(part));
                for key in parts.chain([Key::defined(&definition.name)]) {
                    keys.entry(key).or_default().insert(file);
                }
            }
            known.push((path.clone(), found));
        }
        Self { files: known, keys }
    }
}

impl NameIndex for Known {
    fn files(&self) -> usize {
        self.files.len()
    }

    fn place(&self, file: FileId) -> Option<&TreePath> {
        self.files.get(file.0 as usize).map(|(path, _)| path)
    }

    fn number(&self, path: &TreePath) -> Option<FileId> {
        let place = self.files.iter().position(|(other, _)| other == path)?;
        u32::try_from(place).ok().map(FileId)
    }

    fn each(&self, show: &mut dyn FnMut(FileId, &TreePath)) {
        for (file, (path, _)) in (0..).map(FileId).zip(&self.files) {
            show(file, path);
        }
    }

    fn count(&self, key: Key) -> io::Result<usize> {
        Ok(self.keys.get(&key).map_or(0, BTreeSet::len))
    }

    fn with(&self, key: Key) -> io::Result<Vec<FileId>> {
        Ok(self.keys.get(&key).into_iter().flatten().copied().collect())
    }

    fn bytes(&self, _file: FileId) -> u64 {
        0
    }

    fn outline(&self, file: FileId) -> io::Result<Option<Outline>> {
        Ok(self
            .files
            .get(file.0 as usize)
            .and_then(|(_, found)| found.clone()))
    }
}

pub(super) fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

pub(super) fn shown(hits: &[Hit]) -> Vec<String> {
    let line = |hit: &Hit| {
        let lines = hit.lines.map_or(String::new(), |lines| format!(":{lines}"));
        format!("{}{lines} {}", hit.path, hit.why)
    };
    hits.iter().map(line).collect()
}
