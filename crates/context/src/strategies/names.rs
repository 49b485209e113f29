//! The names in a tree as a question sees it: those in the index, plus those in files that the index doesn't have.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::keyword::Time;
use crate::index::{FileId, Key, Snapshot};
use crate::outline::{Language, Outline, outline};
use crate::path::TreePath;
use crate::query::parts_of;
use crate::strategy::SearchTree;

/// The most files outside the index that are parsed for one question. An index that keeps up leaves a handful.
const BESIDE_LIMIT: usize = 512;
/// The percentage of the time that may be used for that.
const BESIDE_PERCENT: u32 = 50;

pub(super) trait NameIndex {
    fn files(&self) -> usize;

    fn place(&self, file: FileId) -> Option<&TreePath>;

    fn number(&self, path: &TreePath) -> Option<FileId>;

    /// Calls `show` for all files, in any order.
    fn each(&self, show: &mut dyn FnMut(FileId, &TreePath));

    fn count(&self, key: Key) -> io::Result<usize>;

    fn with(&self, key: Key) -> io::Result<Vec<FileId>>;

    /// The size of a file.
    fn bytes(&self, file: FileId) -> u64;

    fn outline(&self, file: FileId) -> io::Result<Option<Outline>>;
}

impl NameIndex for Snapshot {
    fn files(&self) -> usize {
        self.len()
    }

    fn each(&self, show: &mut dyn FnMut(FileId, &TreePath)) {
        for file in Snapshot::files(self) {
            if let Some(path) = self.path(file) {
                show(file, path);
            }
        }
    }

    fn place(&self, file: FileId) -> Option<&TreePath> {
        self.path(file)
    }

    fn number(&self, path: &TreePath) -> Option<FileId> {
        self.file(path)
    }

    fn count(&self, key: Key) -> io::Result<usize> {
        Self::count(self, key)
    }

    fn with(&self, key: Key) -> io::Result<Vec<FileId>> {
        Self::with(self, key)
    }

    fn bytes(&self, file: FileId) -> u64 {
        Self::bytes(self, file)
    }

    fn outline(&self, file: FileId) -> io::Result<Option<Outline>> {
        Self::outline(self, file)
    }
}

/// A file in [`Names`]. It is valid only together with them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Node {
    Indexed(FileId),
    Beside(u32),
}

pub(super) struct Names<'from, I> {
    index: Option<&'from I>,
    beside: Vec<(TreePath, Arc<Outline>)>,
    /// Keys of the files outside the index.
    keys: BTreeMap<Key, Vec<Node>>,
    /// Files with stale index entries, sorted.
    hidden: Vec<FileId>,
    files: usize,
}

impl<'from, I: NameIndex> Names<'from, I> {
    /// The names of an index, and the outlines of the files outside it, as in the view.
    pub(super) fn indexed(index: &'from I, searched: &SearchTree, time: Time<'_>) -> Names<'from, I> {
        let known = searched
            .beside_index
            .iter()
            .filter(|path| Language::is_known(path));
        let mut beside = Vec::new();
        for path in known.take(BESIDE_LIMIT) {
            if time.is_over(BESIDE_PERCENT) {
                break;
            }
            let text = searched.view.read(path).ok();
            if let Some(found) = text.and_then(|text| outline(path, &text, time.scope)) {
                beside.push((path.clone(), Arc::new(found)));
            }
        }
        let hidden = searched.beside_index.iter().filter_map(|path| index.number(path));
        let mut hidden: Vec<FileId> = hidden.collect();
        hidden.sort_unstable();
        let files = index.files();
        Self {
            index: Some(index),
            hidden,
            ..Self::alone(beside, files)
        }
    }

    /// Files that were found without an index, out of `files`.
    pub(super) fn alone(mut beside: Vec<(TreePath, Arc<Outline>)>, files: usize) -> Self {
        beside.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut keys: BTreeMap<Key, Vec<Node>> = BTreeMap::new();
        for (node, (_, outline)) in (0..).map(Node::Beside).zip(&beside) {
            for definition in &outline.definitions {
                let parts = parts_of(&definition.name);
                let parts = parts.iter().map(|part| Key::part(part));
                for key in parts.chain([Key::defined(&definition.name)]) {
                    let nodes = keys.entry(key).or_default();
                    if nodes.last() != Some(&node) {
                        nodes.push(node);
                    }
                }
            }
        }
        Self {
            index: None,
            files: files.max(beside.len()),
            beside,
            keys,
            hidden: Vec::new(),
        }
    }

    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn path(&self, node: Node) -> Option<&TreePath> {
        match node {
            Node::Indexed(file) => self.index?.place(file),
            Node::Beside(place) => self.beside.get(place as usize).map(|(path, _)| path),
        }
    }

    /// The size of a file; small for one outside the index, because it has already been read.
    pub(super) fn bytes(&self, node: Node) -> u64 {
        match (node, self.index) {
            (Node::Indexed(file), Some(index)) => index.bytes(file),
            _ => 0,
        }
    }

    pub(super) fn node(&self, path: &TreePath) -> Option<Node> {
        let beside = self.beside.binary_search_by(|(other, _)| other.cmp(path));
        match beside {
            Ok(place) => u32::try_from(place).ok().map(Node::Beside),
            Err(_) => {
                let file = self.index?.number(path)?;
                (!self.is_hidden(file)).then_some(Node::Indexed(file))
            }
        }
    }

    /// Calls `show` for all files, in any order.
    pub(super) fn each(&self, show: &mut dyn FnMut(Node, &TreePath)) {
        if let Some(index) = self.index {
            index.each(&mut |file, path| {
                if !self.is_hidden(file) {
                    show(Node::Indexed(file), path);
                }
            });
        }
        for (node, (path, _)) in (0..).map(Node::Beside).zip(&self.beside) {
            show(node, path);
        }
    }

    /// How many files have a key, or slightly more. Cheap.
    pub(super) fn count(&self, key: Key) -> io::Result<usize> {
        let beside = self.keys.get(&key).map_or(0, Vec::len);
        let indexed = self.index.map_or(Ok(0), |index| index.count(key))?;
        Ok(indexed + beside)
    }

    pub(super) fn with(&self, key: Key) -> io::Result<Vec<Node>> {
        let indexed = self.index.map_or(Ok(Vec::new()), |index| index.with(key))?;
        let indexed = indexed.into_iter().filter(|file| !self.is_hidden(*file));
        let beside = self.keys.get(&key).into_iter().flatten().copied();
        Ok(indexed.map(Node::Indexed).chain(beside).collect())
    }

    pub(super) fn outline(&self, node: Node) -> io::Result<Option<Arc<Outline>>> {
        match (node, self.index) {
            (Node::Indexed(file), Some(index)) => Ok(index.outline(file)?.map(Arc::new)),
            (Node::Indexed(_), None) => Ok(None),
            (Node::Beside(place), _) => {
                let found = self.beside.get(place as usize);
                Ok(found.map(|(_, outline)| Arc::clone(outline)))
            }
        }
    }

    fn is_hidden(&self, file: FileId) -> bool {
        self.hidden.binary_search(&file).is_ok()
    }
}
