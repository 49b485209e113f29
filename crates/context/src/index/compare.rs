//! How the tree on disk differs from the index.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::Scope;

use super::entry::{FileEntry, Stamp};
use super::part::Part;
use crate::disk;
use crate::path::TreePath;
use crate::view::FILE_LIMIT_BYTES;

/// If more directories than this have changed, the whole tree is walked instead, which isn't slower and runs in
/// parallel.
const MOST_DIRECTORIES: usize = 256;

#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Difference {
    /// Files that are new or have changed, in order.
    pub(super) changed: Vec<TreePath>,
    /// Files that no longer exist, in order.
    pub(super) gone: Vec<TreePath>,
}

/// Compares the tree below a directory with the index. `start` is the root, or a directory below it. It blocks.
///
/// # Errors
/// The directory can't be read, or the scope is cancelled.
pub(super) fn whole(root: &Path, start: &Path, parts: &[Part], scope: &Scope) -> io::Result<Difference> {
    // Collects what all threads have found.
    let found: Mutex<Vec<(TreePath, Stamp)>> = Mutex::default();
    disk::walk(
        root,
        start,
        scope,
        &|visited| {
            if let Some(file) = stamped(visited.path, visited.entry) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            }
            true
        },
        &|_| {},
    )?;
    if scope.is_cancelled() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let below = disk::below(root, start);
    let mut known: Vec<&FileEntry> = match &below {
        None => living(parts).collect(),
        Some(below) => living_below(parts, below),
    };
    known.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(difference(&found, &known))
}

/// Compares some paths with the index: files, or directories with everything below them. It blocks.
///
/// # Errors
/// The root can't be read, or the scope is cancelled.
pub(super) fn some(
    root: &Path,
    paths: &BTreeSet<PathBuf>,
    parts: &[Part],
    scope: &Scope,
) -> io::Result<Difference> {
    let mut all = Difference::default();
    let mut files: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
    for path in paths {
        let Some(below) = disk::below(root, path) else {
            continue;
        };
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                // It may be a different directory than before, or readable only now.
                let (known, inside) = (is_known(parts, &below), directory(root, path, parts, scope)?);
                all.changed.extend(inside.changed);
                all.gone.extend(inside.gone);
                all.gone.extend(known.then_some(below));
            }
            Ok(metadata) if metadata.is_file() => {
                all.gone.extend(paths_below(parts, &below));
                if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                    files
                        .entry(parent.to_owned())
                        .or_default()
                        .insert(name.to_owned());
                }
            }
            _ => {
                all.gone.extend(paths_below(parts, &below));
                all.gone.extend(is_known(parts, &below).then_some(below));
            }
        }
        if scope.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    if files.len() > MOST_DIRECTORIES {
        return whole(root, root, parts, scope);
    }
    for (parent, names) in files {
        let inside = named(root, &parent, names, parts);
        all.changed.extend(inside.changed);
        all.gone.extend(inside.gone);
    }
    for paths in [&mut all.changed, &mut all.gone] {
        paths.sort_unstable();
        paths.dedup();
    }
    Ok(all)
}

/// Compares a directory, if git doesn't ignore it. One that can't be read counts as empty.
fn directory(root: &Path, path: &Path, parts: &[Part], scope: &Scope) -> io::Result<Difference> {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && path != root
        && !is_followed(root, parent, name)
    {
        let gone = disk::below(root, path).map(|below| paths_below(parts, &below));
        return Ok(Difference {
            changed: Vec::new(),
            gone: gone.unwrap_or_default(),
        });
    }
    match whole(root, path, parts, scope) {
        Err(error) if path != root && error.kind() != io::ErrorKind::Interrupted => Ok(Difference {
            changed: Vec::new(),
            gone: disk::below(root, path)
                .map(|below| paths_below(parts, &below))
                .unwrap_or_default(),
        }),
        other => other,
    }
}

fn is_followed(root: &Path, parent: &Path, name: &OsStr) -> bool {
    let (asked, mut found) = (name.to_owned(), false);
    disk::among(
        root,
        parent,
        move |name| name == asked,
        |entry| found |= entry.file_type().is_some_and(|kind| kind.is_dir()),
    );
    found
}

/// The directories that git doesn't ignore, and their files, from a directory on. For a watch.
pub(super) fn followed(root: &Path, start: &Path, scope: &Scope) -> watch::Walked {
    if let (Some(parent), Some(name)) = (start.parent(), start.file_name())
        && start != root
        && !is_followed(root, parent, name)
    {
        return watch::Walked::default();
    }
    // Collects what all threads have found.
    let walked: Mutex<watch::Walked> = Mutex::default();
    let lock = || walked.lock().unwrap_or_else(PoisonError::into_inner);
    let visit = |visited: disk::Visited<'_>| {
        lock().files.push(visited.entry.path().to_owned());
        true
    };
    let directory = |path: &Path| {
        let mut walked = lock();
        if walked.directories.len() < watch::MAX_DIRECTORIES {
            walked.directories.push(path.to_owned());
        } else {
            walked.cut = true;
        }
    };
    // A directory that can't be read has nothing to report.
    drop(disk::walk(root, start, scope, &visit, &directory));
    walked.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn named(root: &Path, parent: &Path, names: BTreeSet<OsString>, parts: &[Part]) -> Difference {
    let names = Arc::new(names);
    let asked = Arc::clone(&names);
    let mut found = Vec::new();
    disk::among(
        root,
        parent,
        move |name| asked.contains(name),
        |entry| {
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                return;
            }
            let path = disk::below(root, entry.path());
            found.extend(path.and_then(|path| stamped(path, entry)));
        },
    );
    found.sort_unstable_by(|one: &(TreePath, Stamp), other| one.0.cmp(&other.0));
    let paths = names
        .iter()
        .filter_map(|name| disk::below(root, &parent.join(name)));
    let mut known: Vec<&FileEntry> = paths.filter_map(|path| entry_of(parts, &path)).collect();
    known.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    difference(&found, &known)
}

/// Both must be in order.
fn difference(found: &[(TreePath, Stamp)], known: &[&FileEntry]) -> Difference {
    let mut all = Difference::default();
    let (mut found, mut known) = (found.iter().peekable(), known.iter().peekable());
    loop {
        let order = match (found.peek(), known.peek()) {
            (None, None) => return all,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((path, _)), Some(entry)) => path.cmp(&entry.path),
        };
        let new = found.next_if(|_| order.is_le());
        let old = known.next_if(|_| order.is_ge());
        match (new, old) {
            (Some((_, stamp)), Some(entry)) if *stamp == entry.stamp => {}
            (Some((path, _)), _) => all.changed.push(path.clone()),
            (None, Some(entry)) => all.gone.push(entry.path.clone()),
            (None, None) => {}
        }
    }
}

fn stamped(path: TreePath, entry: &ignore::DirEntry) -> Option<(TreePath, Stamp)> {
    let stamp = Stamp::of(&entry.metadata().ok()?);
    (stamp.size <= FILE_LIMIT_BYTES).then_some((path, stamp))
}

fn living(parts: &[Part]) -> impl Iterator<Item = &FileEntry> {
    parts
        .iter()
        .flat_map(|part| part.living().map(|(_, entry)| entry))
}

fn living_below<'parts>(parts: &'parts [Part], directory: &TreePath) -> Vec<&'parts FileEntry> {
    let prefix = format!("{directory}/");
    let mut found = Vec::new();
    for part in parts {
        let entries = part.content.entries();
        let from = entries.partition_point(|entry| entry.path.as_str() < prefix.as_str());
        let below = (from as u32..).zip(&entries[from..]);
        let below = below.take_while(|(_, entry)| entry.path.as_str().starts_with(&prefix));
        found.extend(
            below
                .filter(|(file, _)| part.is_alive(*file))
                .map(|(_, entry)| entry),
        );
    }
    found
}

fn paths_below(parts: &[Part], directory: &TreePath) -> Vec<TreePath> {
    let entries = living_below(parts, directory).into_iter();
    entries.map(|entry| entry.path.clone()).collect()
}

fn entry_of<'parts>(parts: &'parts [Part], path: &TreePath) -> Option<&'parts FileEntry> {
    parts.iter().rev().find_map(|part| {
        let file = part.find(path.as_str())?;
        part.content.entries().get(file as usize)
    })
}

fn is_known(parts: &[Part], path: &TreePath) -> bool {
    entry_of(parts, path).is_some()
}
