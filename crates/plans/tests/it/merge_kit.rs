//! What the tests of merges and diffs share: a small random source, contents and trees in memory.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use eventlog::BlobId;
use plans::{Change, Effect, Entry, LinkTarget, Ours, RelPath};

/// Numbers that look random and are the same in each run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % limit as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    text.parse().unwrap()
}

/// Contents, and entries made of them.
#[derive(Clone, Default)]
pub(crate) struct Store(pub(crate) HashMap<BlobId, Bytes>);

impl Store {
    pub(crate) fn file(&mut self, content: impl AsRef<[u8]>) -> Entry {
        self.file_with(content, 0o644)
    }

    pub(crate) fn file_with(&mut self, content: impl AsRef<[u8]>, mode: u32) -> Entry {
        let content = Bytes::copy_from_slice(content.as_ref());
        let hash = BlobId::from_bytes(*blake3::hash(&content).as_bytes());
        let size = content.len() as u64;
        self.0.insert(hash, content);
        Entry::File { hash, size, mode }
    }
}

pub(crate) fn link(target: &str) -> Entry {
    Entry::Symlink {
        target: LinkTarget(target.as_bytes().into()),
    }
}

/// A tree in memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Files(pub(crate) BTreeMap<RelPath, Entry>);

impl Files {
    pub(crate) fn of(entries: &[(&str, &Entry)]) -> Self {
        Self(
            entries
                .iter()
                .map(|(name, entry)| (path(name), (*entry).clone()))
                .collect(),
        )
    }

    /// Does what the effects say, after it has seen that they can be done.
    pub(crate) fn carry_out(&mut self, effects: &[Effect]) {
        let mut paths: Vec<_> = effects.iter().map(|effect| &effect.path).collect();
        assert!(paths.is_sorted(), "{paths:?}");
        paths.dedup();
        assert_eq!(paths.len(), effects.len(), "one for each path");
        for effect in effects {
            assert_eq!(
                self.0.get(&effect.path),
                effect.before.as_ref(),
                "{}",
                effect.path
            );
            assert_ne!(effect.before, effect.after, "{}", effect.path);
            self.set(&effect.path, effect.after.clone());
        }
        self.check();
    }

    /// Does one change after the other.
    pub(crate) fn record<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) {
        for change in changes {
            let old = change.from.as_ref().unwrap_or(&change.path);
            assert_eq!(self.0.get(old), change.before.as_ref(), "{change:?}");
            if change.from.is_some() {
                assert_eq!(self.0.get(&change.path), None, "{change:?}");
                self.0.remove(old);
            }
            self.set(&change.path, change.after.clone());
        }
    }

    /// What is different in another tree, without renames.
    pub(crate) fn changes_to(&self, other: &Self) -> Vec<Change> {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let changes = paths.into_iter().map(|path| Change {
            path: path.clone(),
            before: self.0.get(path).cloned(),
            after: other.0.get(path).cloned(),
            from: None,
        });
        changes.filter(|change| change.before != change.after).collect()
    }

    /// Everything lies in a directory.
    pub(crate) fn check(&self) {
        for path in self.0.keys() {
            for directory in path.ancestors() {
                assert_eq!(
                    self.0.get(&directory),
                    Some(&Entry::Directory),
                    "{path} in {self:?}"
                );
            }
        }
    }

    fn set(&mut self, path: &RelPath, entry: Option<Entry>) {
        match entry {
            Some(entry) => self.0.insert(path.clone(), entry),
            None => self.0.remove(path),
        };
    }
}

impl Ours for Files {
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>> {
        Ok(self.0.get(path).cloned())
    }

    /// Only what is right in it.
    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
        let mut inside = self
            .0
            .keys()
            .filter(|path| path.parent().as_ref() == Some(directory));
        Ok(inside.any(|path| !beside(path)))
    }

    fn find(&self, content: BlobId) -> Option<RelPath> {
        let mut files = self.0.iter();
        files.find_map(|(path, entry)| (entry.content() == Some(content)).then(|| path.clone()))
    }
}

/// Runs git, away from the user's settings.
pub(crate) fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap());
    command
}
