//! Keeps track of the indexes: opens them on demand, closes idle ones, and deletes some when there is no space.
//!
//! An index stays registered until it has really ended, and questions do without it in the meantime. So two indexes
//! never write into one directory, and no index is deleted while it is being written.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use kernel::{CancellationToken, Clock, Deadline, Scope};
use process::Tasks;

use crate::index::{Index, IndexInfo, IndexOptions, IndexState, Way};

/// An index that isn't used for this long releases its memory and its watches. It stays on disk.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long an index may take to end: as long as the file that it is processing.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// How much of a directory's name comes from the path of the tree.
const NAME_LENGTH: usize = 32;
/// The prefix of directories that are being deleted.
const REMOVED: &str = "removed-";

/// Where indexes are stored, and what they are created with.
#[derive(Debug)]
pub(crate) struct Indexes {
    pub(crate) directory: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) limit_bytes: u64,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<dyn Clock>,
    /// Questions that walk a tree have priority over indexes that are being built.
    pub(crate) way: Way,
    /// The state of each directory. An index opens in the background, so nothing blocks while holding the lock.
    pub(crate) book: IndexBook,
}

/// Guards the index of each directory; held to look one up or replace it.
pub(crate) type IndexBook = Arc<Mutex<BTreeMap<PathBuf, Entry>>>;

#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Open(Arc<Index>),
    Removing,
}

impl Indexes {
    /// The index of a tree if it is open, or was built before and can be read soon.
    pub(crate) fn at_hand(&self, root: &Path) -> Option<Arc<Index>> {
        let directory = self.directory_of(root);
        let is_known = self.lock().contains_key(&directory) || directory.is_dir();
        is_known.then(|| self.open(root)).flatten()
    }

    /// The index of a tree, opened if necessary; `None` while it is being deleted.
    pub(crate) fn open(&self, root: &Path) -> Option<Arc<Index>> {
        let directory = self.directory_of(root);
        let mut book = self.lock();
        let entry = book.entry(directory.clone()).or_insert_with(|| {
            let options = IndexOptions {
                root: root.to_owned(),
                directory,
                scratch: self.scratch.clone(),
                limit_bytes: self.limit_bytes,
                tasks: self.tasks.clone(),
                clock: Arc::clone(&self.clock),
            };
            let directory = options.directory.clone();
            let index = Index::open_behind(options, self.way.clone());
            self.tasks.spawn("idle index", self.let_go(directory, &index));
            Entry::Open(index)
        });
        match entry {
            Entry::Open(index) => {
                index.note_use();
                Some(Arc::clone(index))
            }
            Entry::Removing => None,
        }
    }

    pub(crate) fn list(&self) -> Vec<IndexInfo> {
        let mut list: Vec<IndexInfo> = self.all_open().iter().map(|(_, index)| index.info()).collect();
        list.sort_by(|one, other| one.root.cmp(&other.root));
        list
    }

    /// Deletes an index. Returns whether there was one.
    pub(crate) async fn forget(&self, root: &Path, scope: &Scope) -> io::Result<bool> {
        let directory = self.directory_of(root);
        let open = match self.lock().get(&directory) {
            Some(Entry::Open(index)) => Some(Arc::clone(index)),
            Some(Entry::Removing) => return Ok(false),
            None => None,
        };
        if let Some(index) = &open {
            self.end(index, scope).await?;
        }
        let was_there = self.remove(&directory, open.as_ref()).await?;
        Ok(was_there || open.is_some())
    }

    /// Closes an index when it wasn't used for a while. The future ends with the index.
    fn let_go(&self, directory: PathBuf, index: &Arc<Index>) -> impl Future<Output = ()> + Send + use<> {
        let (state, index) = (index.state().clone(), Arc::downgrade(index));
        let (book, clock) = (Arc::clone(&self.book), Arc::clone(&self.clock));
        let mut next = clock.now() + IDLE;
        async move {
            // Nothing cancels it: it ends with the index.
            let always = CancellationToken::new();
            let is_closed = |state: &IndexState| *state == IndexState::Closed;
            loop {
                let pause = next.saturating_duration_since(clock.now());
                let pause = Deadline::after(&clock, pause);
                if state.wait_until(is_closed, pause, &always.scope()).await.is_ok() {
                    return;
                }
                let Some(index) = index.upgrade() else {
                    return;
                };
                match index.close_if_unused(IDLE) {
                    Some(at) => next = at,
                    None => {
                        drop(
                            state
                                .wait_until(is_closed, Deadline::never(), &always.scope())
                                .await,
                        );
                        unregister(&book, &directory, &index);
                        return;
                    }
                }
            }
        }
    }

    /// Deletes the least recently used closed indexes until all fit. Returns how many were deleted.
    pub(crate) async fn collect(&self) -> io::Result<usize> {
        let directory = self.directory.clone();
        let listed = tokio::task::spawn_blocking(move || closed_indexes(&directory)).await;
        let open: Vec<PathBuf> = self.lock().keys().cloned().collect();
        let listed = listed.map_err(io::Error::other)??;
        let mut removed = 0;
        for directory in too_many(listed, &open, self.limit_bytes) {
            removed += usize::from(self.remove(&directory, None).await?);
        }
        Ok(removed)
    }

    /// Closes all indexes without waiting.
    pub(crate) fn close(&self) {
        for (_, index) in self.all_open() {
            index.close();
        }
    }

    fn all_open(&self) -> Vec<(PathBuf, Arc<Index>)> {
        let book = self.lock();
        let open = book.iter().filter_map(|(directory, entry)| match entry {
            Entry::Open(index) => Some((directory.clone(), Arc::clone(index))),
            Entry::Removing => None,
        });
        open.collect()
    }

    /// Deletes a directory if it is still in the state that the caller saw: used by an index that has ended, or unused.
    /// Returns whether it existed.
    async fn remove(&self, directory: &Path, seen: Option<&Arc<Index>>) -> io::Result<bool> {
        {
            let mut book = self.lock();
            let is_as_seen = match (book.get(directory), seen) {
                (None, None) => true,
                (Some(Entry::Open(found)), Some(seen)) => Arc::ptr_eq(found, seen),
                _ => false,
            };
            if !is_as_seen {
                return Ok(false);
            }
            book.insert(directory.to_owned(), Entry::Removing);
        }
        let path = directory.to_owned();
        let removed = tokio::task::spawn_blocking(move || remove(&path)).await;
        self.lock().remove(directory);
        removed.map_err(io::Error::other)?
    }

    /// Closes an index, and waits until it has ended.
    async fn end(&self, index: &Index, scope: &Scope) -> io::Result<()> {
        index.close();
        let patience = Deadline::after(&self.clock, ENDS_WITHIN);
        let ended = index
            .state()
            .wait_until(|state| *state == IndexState::Closed, patience, scope);
        match ended.await {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the index does not end")),
        }
    }

    fn directory_of(&self, root: &Path) -> PathBuf {
        let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        self.directory
            .join(name.as_str().get(..NAME_LENGTH).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Entry>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unregisters an index that has ended, if it is still the registered one.
fn unregister(book: &IndexBook, directory: &Path, index: &Arc<Index>) {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    let is_the_one = matches!(book.get(directory), Some(Entry::Open(found)) if Arc::ptr_eq(found, index));
    if is_the_one {
        book.remove(directory);
    }
}

/// Deletes a directory atomically. Returns whether it existed.
fn remove(directory: &Path) -> io::Result<bool> {
    let name = directory
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let aside = directory.with_file_name(format!("{REMOVED}{name}"));
    if let Err(error) = fs::remove_dir_all(&aside)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    match fs::rename(directory, &aside) {
        Ok(()) => fs::remove_dir_all(&aside).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The directories of indexes: when they were last used, their size, and their path. Completes earlier deletions.
/// It blocks.
fn closed_indexes(directory: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let mut found = Vec::new();
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        listed => listed?,
    };
    for entry in listed {
        let path = entry?.path();
        let is_left = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(REMOVED.as_bytes()));
        match is_left {
            // Another thread may be deleting it at the same time.
            true => drop(fs::remove_dir_all(&path)),
            false => {
                let (bytes, used) = size(&path)?;
                found.push((used, bytes, path));
            }
        }
    }
    Ok(found)
}

/// Which directories to delete so that the rest fits: the least recently used ones that aren't open.
fn too_many(mut all: Vec<(SystemTime, u64, PathBuf)>, open: &[PathBuf], limit_bytes: u64) -> Vec<PathBuf> {
    all.sort_unstable();
    let mut total: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
    let mut going = Vec::new();
    for (_, bytes, path) in all {
        if total > limit_bytes && !open.contains(&path) {
            total = total.saturating_sub(bytes);
            going.push(path);
        }
    }
    going
}

/// The size of the files in a directory, and when the last of them was written.
fn size(directory: &Path) -> io::Result<(u64, SystemTime)> {
    let (mut bytes, mut used) = (0, SystemTime::UNIX_EPOCH);
    for entry in fs::read_dir(directory)? {
        // A file that disappears in the meantime has no size.
        let Ok(found) = entry?.metadata() else { continue };
        bytes += found.len();
        used = used.max(found.modified()?);
    }
    Ok((bytes, used))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn index_of(directory: &Path, name: &str, bytes: usize, age: u64) -> PathBuf {
        let path = directory.join(name);
        fs::create_dir(&path).unwrap();
        let file = path.join("segment");
        fs::write(&file, vec![0; bytes]).unwrap();
        let used = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(used)
            .unwrap();
        path
    }

    #[test]
    fn what_was_not_used_longest_goes_until_the_rest_fits() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        index_of(directory, "a", 200, 2);
        index_of(directory, "b", 500, 3);
        index_of(directory, "c", 100, 1);
        let open = [index_of(directory, "open", 200, 4)];
        index_of(directory, "removed-x", 1000, 0);
        let all = closed_indexes(directory).unwrap();
        for (limit, expected) in [
            (1000, vec![]),
            (999, vec!["b"]),
            (500, vec!["b"]),
            (499, vec!["b", "a"]),
            (0, vec!["b", "a", "c"]),
        ] {
            let expected: Vec<PathBuf> = expected.iter().map(|name| directory.join(name)).collect();
            assert_eq!(too_many(all.clone(), &open, limit), expected, "{limit}");
        }
        assert!(!directory.join("removed-x").exists());
        assert_eq!(closed_indexes(&directory.join("none")).unwrap(), []);
    }

    #[test]
    fn a_removal_that_was_cut_short_is_no_hindrance() {
        let directory = tempfile::tempdir().unwrap();
        let path = index_of(directory.path(), "a", 1, 0);
        index_of(directory.path(), "removed-a", 1, 0);
        assert!(remove(&path).unwrap());
        assert!(!remove(&path).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
