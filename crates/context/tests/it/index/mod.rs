//! The index of a tree, against the tree itself.

mod basics;
mod broken;
mod counted;
mod keeps_up;
mod killed;
mod model;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::{DiskView, Index, IndexOptions, IndexState, Key, Snapshot, TreePath, View};
use kernel::{CancellationToken, Clock, Deadline, SystemClock};
use process::Tasks;
use tempfile::TempDir;

/// More than anything here takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tree, and where its index is.
struct Site {
    tree: TempDir,
    data: TempDir,
    scratch: TempDir,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    limit_bytes: u64,
}

impl Site {
    fn new() -> Self {
        Self {
            tree: tempfile::tempdir().unwrap(),
            data: tempfile::tempdir().unwrap(),
            scratch: tempfile::tempdir().unwrap(),
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
            limit_bytes: 1 << 30,
        }
    }

    fn root(&self) -> PathBuf {
        self.tree.path().canonicalize().unwrap()
    }

    fn directory(&self) -> PathBuf {
        self.data.path().join("index")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn open(&self) -> Arc<Index> {
        Index::open(IndexOptions {
            root: self.root(),
            directory: self.directory(),
            scratch: self.scratch.path().to_owned(),
            limit_bytes: self.limit_bytes,
            tasks: self.tasks.clone(),
            clock: Arc::clone(&self.clock),
        })
    }

    /// Closes an index, and waits until it has ended.
    async fn close(&self, index: Arc<Index>) {
        index.close();
        wait_for(&index, |state| *state == IndexState::Closed).await;
    }
}

async fn wait_for(index: &Index, predicate: impl Fn(&IndexState) -> bool + Unpin) {
    let scope = CancellationToken::new().scope();
    index
        .state()
        .wait_until(predicate, patience(), &scope)
        .await
        .unwrap();
}

fn patience() -> Deadline {
    Deadline::after(&SystemClock::shared(), PATIENCE)
}

async fn up_to_date(index: &Index) -> Arc<Snapshot> {
    let scope = CancellationToken::new().scope();
    index.up_to_date(patience(), &scope).await.unwrap()
}

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

/// The files that a snapshot knows.
fn known(snapshot: &Snapshot) -> BTreeSet<String> {
    let files = snapshot.files();
    let paths: Vec<String> = files
        .map(|file| snapshot.path(file).unwrap().to_string())
        .collect();
    assert_eq!(paths.len(), snapshot.len(), "every file counts once");
    let set: BTreeSet<String> = paths.into_iter().collect();
    assert_eq!(set.len(), snapshot.len(), "no file is there twice");
    for path in &set {
        let file = snapshot.file(&TreePath::new(path).unwrap()).unwrap();
        assert_eq!(snapshot.path(file).unwrap().as_str(), path);
    }
    set
}

/// The files that may hold a text, as the index says.
fn may_hold(snapshot: &Snapshot, needle: &str) -> BTreeSet<String> {
    let keys = needle.as_bytes().windows(3).map(|three| {
        let key = Key::trigram([three[0], three[1], three[2]]);
        let found: BTreeSet<_> = snapshot.with(key).unwrap().into_iter().collect();
        assert!(snapshot.count(key).unwrap() >= found.len());
        found
    });
    let files = keys.reduce(|one, other| &one & &other).unwrap_or_default();
    let paths = files
        .into_iter()
        .map(|file| snapshot.path(file).unwrap().to_string());
    paths.collect()
}

/// The text files of a tree that git does not ignore, and what is in them.
fn truth(root: &Path) -> Vec<(String, String)> {
    let view = DiskView::new(root.to_owned());
    let found = Mutex::new(Vec::new());
    let scope = CancellationToken::new().scope();
    let visit = |path: TreePath| {
        if let Ok(text) = view.read(&path) {
            let file = (path.to_string(), text.to_string());
            found.lock().unwrap().push(file);
        }
        true
    };
    view.walk(&scope, &visit).unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

/// Holds a snapshot against the tree: exactly its files are known, and all that hold a text are found.
fn check(snapshot: &Arc<Snapshot>, root: &Path, needles: &[&str]) {
    let truth = truth(root);
    let files: BTreeSet<String> = truth.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(known(snapshot), files);
    assert_eq!(snapshot.changed_since(None), []);
    for needle in needles {
        let holding = truth
            .iter()
            .filter(|(_, text)| text.to_ascii_lowercase().contains(&needle.to_ascii_lowercase()));
        let holding: BTreeSet<String> = holding.map(|(path, _)| path.clone()).collect();
        let found = may_hold(snapshot, needle);
        assert!(
            holding.is_subset(&found),
            "{needle:?} is in {holding:?}, and only {found:?} were found"
        );
    }
}
