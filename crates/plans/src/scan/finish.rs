//! Turns what the threads found into the result of the scan.

use std::collections::HashSet;

use super::directory::ScannedDirectory;
use super::walk::WalkResult;
use crate::{Ignored, LeftOut, RelPath, WhyLeftOut};

/// How many ignored directories a sandbox takes over. Each needs its own layer and mount. The others are reported as
/// left out.
const DIRECTORIES_LIMIT: usize = 32;
/// How many ignored files a sandbox takes over. Each is copied for every plan. The others are reported as left
/// out.
const FILES_LIMIT: usize = 1000;
/// The maximum size of such a file, in bytes, for the same reason.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;

/// Sorts and limits what was found. The last value says whether all scanned directories are part of the tree.
pub(super) fn finish(found: WalkResult) -> (Vec<ScannedDirectory>, Ignored, Vec<LeftOut>, bool) {
    let WalkResult {
        mut directories,
        mut ignored_directories,
        mut ignored_files,
        mut left_out,
        ..
    } = found;
    let scanned = directories.len();
    let empty = entered_for_nothing(&directories);
    if !empty.is_empty() {
        let is_in_one =
            |path: &RelPath| empty.contains(path) || path.ancestors().any(|above| empty.contains(&above));
        directories.retain(|directory| !directory.path.as_ref().is_some_and(is_in_one));
        ignored_directories.retain(|path| !is_in_one(path));
        ignored_files.retain(|(path, _)| !is_in_one(path));
        // An entry without a valid path is in a directory that has one.
        let is_left_in_one = |left: &LeftOut| {
            let directory = || {
                left.path
                    .rsplit_once('/')
                    .and_then(|(above, _)| above.parse().ok())
            };
            let path: Option<RelPath> = left.path.parse().ok().or_else(directory);
            path.as_ref().is_some_and(is_in_one)
        };
        left_out.retain(|left| !is_left_in_one(left));
        let is_outermost = |path: &&RelPath| !path.ancestors().any(|above| empty.contains(&above));
        ignored_directories.extend(empty.iter().filter(is_outermost).cloned());
    }
    let is_whole = directories.len() == scanned;

    ignored_directories.sort();
    ignored_files.sort();
    let too_many = |path: RelPath| LeftOut::at(&path, WhyLeftOut::TooMany);
    let surplus = ignored_directories.split_off(ignored_directories.len().min(DIRECTORIES_LIMIT));
    left_out.extend(surplus.into_iter().map(too_many));
    let mut files = Vec::new();
    for (path, size) in ignored_files {
        if size > FILE_LIMIT_BYTES || files.len() == FILES_LIMIT {
            left_out.push(too_many(path));
        } else {
            files.push(path);
        }
    }
    left_out.sort_by(|one, other| one.path.cmp(&other.path));
    left_out.dedup();
    let ignored = Ignored {
        directories: ignored_directories,
        files,
    };
    (directories, ignored, left_out, is_whole)
}

/// Ignored directories that were entered for something that may be in them, but isn't. They are then ignored as a
/// whole.
fn entered_for_nothing(directories: &[ScannedDirectory]) -> HashSet<RelPath> {
    let paths = |is_wanted: fn(&ScannedDirectory) -> bool| {
        let wanted = directories.iter().filter(move |directory| is_wanted(directory));
        wanted.filter_map(|directory| directory.path.clone())
    };
    let mut empty: HashSet<RelPath> = paths(|directory| directory.is_tentative).collect();
    if empty.is_empty() {
        return empty;
    }
    let is_part = |directory: &ScannedDirectory| {
        !directory.is_tentative || !directory.files.is_empty() || !directory.links.is_empty()
    };
    for path in paths(is_part) {
        empty.remove(&path);
        for above in path.ancestors() {
            empty.remove(&above);
        }
    }
    empty
}
