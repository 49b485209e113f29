//! Compares what was found in a sandbox with what is known about it. Pure.

use std::collections::{BTreeMap, HashMap};

use eventlog::BlobId;

use super::contract::Known;
use crate::{Change, Entry, LeftOut, RelPath, WhyLeftOut};

/// What was found at the scanned paths; `None` for nothing.
pub(super) type FoundEntries = BTreeMap<RelPath, Option<Entry>>;

/// The changes, in path order. Paths that weren't scanned haven't changed.
pub(super) fn changes(found: FoundEntries, known: &Known) -> Vec<Change> {
    let differs = |(path, after): (RelPath, Option<Entry>)| {
        let before = known.get(&path).cloned();
        (before != after).then_some(Change {
            path,
            before,
            after,
            from: None,
        })
    };
    with_renames(found.into_iter().filter_map(differs).collect())
}

/// Leaves out paths that are too long, by the outermost new directory that contains nothing else. Directories that only
/// lead to such a path would be carried without it.
pub(super) fn leave_out_too_long(
    found: &mut FoundEntries,
    known: &Known,
    too_long: Vec<RelPath>,
) -> Vec<LeftOut> {
    let leave_out = |deepest: RelPath| {
        let (mut outermost, mut at) = (deepest.clone(), deepest);
        loop {
            let first = [at.as_bytes(), b"/"].concat();
            let mut below = found
                .range(&at..)
                .skip_while(|(path, _)| path.as_bytes() < first.as_slice())
                .take_while(|(path, _)| path.is_below(&at));
            if known.get(&at).is_some() || below.any(|(_, entry)| entry.is_some()) {
                break;
            }
            found.remove(&at);
            let parent = at.parent();
            outermost = at;
            match parent {
                Some(parent) if known.get(&parent).is_none() => at = parent,
                _ => break,
            }
        }
        LeftOut::at(&outermost, WhyLeftOut::TooLong)
    };
    too_long.into_iter().map(leave_out).collect()
}

/// A deleted file and a new one with the same content are a rename, if there is only one such pair. Empty files are
/// all alike, so they are never paired.
fn with_renames(mut changes: Vec<Change>) -> Vec<Change> {
    let mut pairs: HashMap<BlobId, Pair> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        let (content, is_gone) = match (&change.before, &change.after) {
            (Some(Entry::File { hash, size: 1.., .. }), None) => (*hash, true),
            (None, Some(Entry::File { hash, size: 1.., .. })) => (*hash, false),
            _ => continue,
        };
        let pair = pairs.entry(content).or_default();
        if is_gone { &mut pair.gone } else { &mut pair.new }.push(at);
    }
    let mut is_old_name = vec![false; changes.len()];
    for pair in pairs.into_values() {
        if let ([gone], [new]) = (pair.gone.as_slice(), pair.new.as_slice()) {
            changes[*new].before = changes[*gone].before.clone();
            changes[*new].from = Some(changes[*gone].path.clone());
            is_old_name[*gone] = true;
        }
    }
    let mut is_old_name = is_old_name.into_iter();
    changes.retain(|_| !is_old_name.next().unwrap_or(false));
    changes
}

/// The changes with one content: where it was deleted, and where it is new.
#[derive(Default)]
struct Pair {
    gone: Vec<usize>,
    new: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::manifest::Manifest;

    fn path(text: &str) -> RelPath {
        text.parse().unwrap()
    }

    fn file(content: &str) -> Entry {
        Entry::File {
            hash: BlobId::from_bytes(*blake3::hash(content.as_bytes()).as_bytes()),
            size: content.len() as u64,
            mode: 0o644,
        }
    }

    /// `name=content` for files, `name/` for directories, `name!` for nothing.
    fn entry(text: &str) -> (RelPath, Option<Entry>) {
        match (
            text.split_once('='),
            text.strip_suffix('!'),
            text.strip_suffix('/'),
        ) {
            (Some((name, content)), _, _) => (path(name), Some(file(content))),
            (None, Some(name), _) => (path(name), None),
            (None, None, Some(name)) => (path(name), Some(Entry::Directory)),
            _ => panic!("{text}"),
        }
    }

    fn shown(change: &Change) -> String {
        let side = |entry: &Option<Entry>| match entry {
            None => "nothing".to_owned(),
            Some(Entry::Directory) => "directory".to_owned(),
            Some(entry) => ["a", "b", "c", ""]
                .into_iter()
                .find(|content| file(content) == *entry)
                .map_or_else(|| "?".to_owned(), |content| format!("`{content}`")),
        };
        let from = change
            .from
            .as_ref()
            .map_or_else(String::new, |from| format!(" from {from}"));
        format!(
            "{}: {} -> {}{from}",
            change.path,
            side(&change.before),
            side(&change.after)
        )
    }

    #[test]
    fn what_differs_is_a_change_and_a_unique_pair_is_a_rename() {
        // Base, recorded since, found, expected.
        let cases: &[[&[&str]; 4]] = &[
            [&["x=a"], &[], &["x=a"], &[]],
            [
                &["x=a"],
                &[],
                &["x=b", "y=c"],
                &["x: `a` -> `b`", "y: nothing -> `c`"],
            ],
            [&["x=a"], &["x=b"], &["x=b"], &[]],
            [&["x=a"], &["x=b"], &["x=a"], &["x: `b` -> `a`"]],
            [&["x=a"], &["x!"], &["x!"], &[]],
            [&["x=a"], &[], &["x!", "y=a"], &["y: `a` -> `a` from x"]],
            [&["x=a"], &[], &["a=a", "x!"], &["a: `a` -> `a` from x"]],
            // Two candidates: it is ambiguous.
            [
                &["x=a", "y=a"],
                &[],
                &["x!", "y!", "z=a"],
                &["x: `a` -> nothing", "y: `a` -> nothing", "z: nothing -> `a`"],
            ],
            [
                &["x="],
                &[],
                &["x!", "y="],
                &["x: `` -> nothing", "y: nothing -> ``"],
            ],
            // The new path wasn't free.
            [
                &["x=a", "y=b"],
                &[],
                &["x!", "y=a"],
                &["x: `a` -> nothing", "y: `b` -> `a`"],
            ],
            [
                &["x=a"],
                &[],
                &["x/", "x/y=a"],
                &["x: `a` -> directory", "x/y: nothing -> `a`"],
            ],
        ];
        for [base, since, found, expected] in cases {
            let known = Known {
                base: Arc::new(Manifest {
                    entries: base
                        .iter()
                        .map(|text| entry(text))
                        .map(|(path, entry)| (path, entry.unwrap()))
                        .collect(),
                }),
                since: Arc::new(since.iter().map(|text| entry(text)).collect()),
            };
            let found = found.iter().map(|text| entry(text)).collect();
            let changes: Vec<String> = changes(found, &known).iter().map(shown).collect();
            assert_eq!(changes, *expected);
        }
    }
}
