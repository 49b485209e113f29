//! What holds for all trees and changes.

use plans::{Change, Entry, Net, RelPath, fold, invert, merge_all, merge_changes};
use proptest::prelude::*;

use crate::merge_kit::{Files, Random, Store, link, path};

const PATHS: &[&str] = &["a", "b", "c", "a/x", "a/y", "b/x", "b/x/deep", "c-d", "d/e/f"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Folding is the same as carrying the changes out one by one.
    #[test]
    fn the_net_of_a_sequence_is_what_it_comes_to(seed in any::<u64>()) {
        let (mut random, mut store) = (Random::new(seed), Store::default());
        let base = tree(&mut random, &mut store, PATHS);
        let (changes, after) = session(&mut random, &mut store, &base, PATHS);
        let folded = fold(&changes);
        assert_exact(&base, &folded, &after);
        prop_assert_eq!(&fold(&folded), &folded);

        let net: Net = changes.iter().collect();
        let mut known = base.0.clone();
        for (path, entry) in net.since() {
            match entry {
                Some(entry) => known.insert(path, entry),
                None => known.remove(&path),
            };
        }
        prop_assert_eq!(&known, &after.0);
        prop_assert_eq!(net.is_empty(), base == after);
    }

    /// What was changed can be taken back, one by one and as a whole.
    #[test]
    fn taken_back_it_is_as_it_was(seed in any::<u64>()) {
        let (mut random, mut store) = (Random::new(seed), Store::default());
        let base = tree(&mut random, &mut store, PATHS);
        let (changes, after) = session(&mut random, &mut store, &base, PATHS);
        let mut back = after.clone();
        back.record(&invert(&changes));
        prop_assert_eq!(&back, &base);
        assert_exact(&after, &fold(&invert(&fold(&changes))), &base);

        let mut applied = base.clone();
        applied.carry_out(&merged(&changes, &base, &store));
        prop_assert_eq!(&applied, &after);
        applied.carry_out(&merged(&invert(&changes), &after, &store));
        prop_assert_eq!(&applied, &base);
    }

    /// Two plans that touch nothing in common can be applied in any order, and each can be taken back alone.
    #[test]
    fn disjoint_plans_commute(seed in any::<u64>()) {
        let (mut random, mut store) = (Random::new(seed), Store::default());
        let (left, right) = (["l/a", "l/b", "l/c/d", "m"], ["r/a", "r/b", "r/c/d", "s"]);
        let base = tree(&mut random, &mut store, &[left, right].concat());
        let (one, _) = session(&mut random, &mut store, &base, &left);
        let (other, only_other) = session(&mut random, &mut store, &base, &right);
        let both = |lists: [&[Change]; 2]| {
            let merged = merge_all(&lists, &base, &store.0).unwrap();
            assert_eq!(merged.conflicts, []);
            let mut tree = base.clone();
            tree.carry_out(&merged.effects);
            tree
        };
        let (forth, back) = (both([&one, &other]), both([&other, &one]));
        prop_assert_eq!(&forth, &back);
        let mut undone = forth.clone();
        undone.carry_out(&merged(&invert(&one), &forth, &store));
        prop_assert_eq!(undone, only_other);
    }

    /// Whatever both sides did: what is to be done can be done, a side that did nothing changes nothing, and nothing is
    /// dropped of what only one side touched.
    #[test]
    fn a_merge_that_is_clean_is_whole(seed in any::<u64>()) {
        let (mut random, mut store) = (Random::new(seed), Store::default());
        let base = tree(&mut random, &mut store, PATHS);
        let (changes, theirs) = session(&mut random, &mut store, &base, PATHS);
        let (_, ours) = session(&mut random, &mut store, &base, PATHS);
        let merged = merge_changes(&changes, &ours, &store.0).unwrap();
        if merged.conflicts.is_empty() {
            let mut tree = ours.clone();
            tree.carry_out(&merged.effects);
            // What was renamed carries changes from one path to another.
            let folded = fold(&changes);
            let renamed = folded.iter().filter_map(|change| Some([&change.path, change.from.as_ref()?]));
            let renamed: Vec<&RelPath> = renamed.flatten().collect();
            let paths = PATHS.iter().map(|name| path(name));
            for path in paths.filter(|path| !renamed.contains(&path)) {
                let [base, ours, theirs, now] = [&base, &ours, &theirs, &tree].map(|tree| file_at(tree, &path));
                if base == ours {
                    prop_assert_eq!(now, theirs, "{}", path);
                } else if base == theirs {
                    prop_assert_eq!(now, ours, "{}", path);
                }
            }
            // And once more changes nothing.
            let mut contents = store.0.clone();
            contents.extend(merged.made);
            if theirs == tree {
                prop_assert_eq!(merge_changes(&changes, &tree, &contents).unwrap().effects, vec![]);
            }
        }
    }
}

/// What is told of a sequence: a rename is one only if it is the same file that was there before.
#[test]
fn what_a_sequence_is_told_as() {
    let mut store = Store::default();
    let [a, b, c] = ["a", "b", "c"].map(|text| Some(store.file(text)));
    let change = |path: &str, before: &Option<Entry>, after: &Option<Entry>| Change {
        path: self::path(path),
        before: before.clone(),
        after: after.clone(),
        from: None,
    };
    let rename = |from: &str, to: &str, before: &Option<Entry>, after: &Option<Entry>| Change {
        from: Some(path(from)),
        ..change(to, before, after)
    };
    let none = &None;
    for (sequence, expected) in [
        (
            vec![change("f", none, &a), change("f", &a, &b)],
            vec![change("f", none, &b)],
        ),
        (vec![change("f", none, &a), change("f", &a, none)], vec![]),
        (vec![change("f", &a, &b), change("f", &b, &a)], vec![]),
        (
            vec![change("f", &a, &b), change("f", &b, none)],
            vec![change("f", &a, none)],
        ),
        (
            vec![change("f", &a, none), change("f", none, &b)],
            vec![change("f", &a, &b)],
        ),
        (
            vec![rename("f", "g", &a, &b), rename("g", "h", &b, &c)],
            vec![rename("f", "h", &a, &c)],
        ),
        (
            vec![rename("f", "g", &a, &b), rename("g", "f", &b, &c)],
            vec![change("f", &a, &c)],
        ),
        (
            vec![change("f", none, &a), rename("f", "g", &a, &b)],
            vec![change("g", none, &b)],
        ),
        (
            vec![change("f", &a, &b), rename("f", "g", &b, &b)],
            vec![rename("f", "g", &a, &b)],
        ),
        (
            vec![rename("f", "g", &a, &a), change("g", &a, none)],
            vec![change("f", &a, none)],
        ),
        (
            vec![rename("f", "g", &a, &a), change("f", none, &b)],
            vec![change("f", &a, &b), change("g", none, &a)],
        ),
        (
            vec![change("g", &b, none), rename("f", "g", &a, &a)],
            vec![change("f", &a, none), change("g", &b, &a)],
        ),
        (
            vec![
                change("f", &a, none),
                change("f", none, &b),
                rename("f", "g", &b, &b),
            ],
            vec![change("f", &a, none), change("g", none, &b)],
        ),
    ] {
        assert_eq!(fold(&sequence), expected, "{sequence:?}");
    }
}

/// A file or a symlink at a path.
fn file_at<'a>(tree: &'a Files, path: &RelPath) -> Option<&'a Entry> {
    tree.0.get(path).filter(|entry| !entry.is_directory())
}

fn merged(changes: &[Change], ours: &Files, store: &Store) -> Vec<plans::Effect> {
    let merged = merge_changes(changes, ours, &store.0).unwrap();
    assert_eq!((merged.conflicts, merged.combined), (vec![], vec![]));
    merged.effects
}

/// The changes are of this tree, in order, one for each path, and come to that one.
fn assert_exact(before: &Files, changes: &[Change], after: &Files) {
    assert!(
        changes.is_sorted_by(|one, other| one.path < other.path),
        "{changes:?}"
    );
    let mut tree = before.clone();
    for change in changes {
        let old = change.from.as_ref().unwrap_or(&change.path);
        assert_eq!(before.0.get(old), change.before.as_ref(), "{change:?}");
        assert_eq!(after.0.get(&change.path), change.after.as_ref(), "{change:?}");
        assert!(
            change.from.is_some() || change.before != change.after,
            "{change:?}"
        );
        if change.from.is_some() {
            assert_eq!(
                (before.0.get(&change.path), after.0.get(old)),
                (None, None),
                "{change:?}"
            );
            tree.0.remove(old);
        }
        match &change.after {
            Some(entry) => tree.0.insert(change.path.clone(), entry.clone()),
            None => tree.0.remove(&change.path),
        };
    }
    assert_eq!(&tree, after);
}

fn entry(random: &mut Random, store: &mut Store) -> Entry {
    match random.below(8) {
        0 => link(random.pick(&["a", "b"])),
        1 => store.file_with(random.pick(&["1\n", "2\n"]), 0o755),
        2 => store.file(random.pick(&["\0one", "\0two"])),
        _ => {
            let lines: Vec<&str> = (0..5).map(|_| random.pick(&["a\n", "b\n", "c\n"])).collect();
            store.file(lines.concat())
        }
    }
}

/// A tree with something at some of the paths.
fn tree(random: &mut Random, store: &mut Store, paths: &[&str]) -> Files {
    let mut tree = Files::default();
    for _ in 0..random.below(8) {
        let path = path(random.pick(paths));
        put(&mut tree, &path, entry(random, store), &mut Vec::new());
    }
    tree
}

/// Some work on a tree: all of its changes, and the tree afterwards.
fn session(random: &mut Random, store: &mut Store, base: &Files, paths: &[&str]) -> (Vec<Change>, Files) {
    let (mut tree, mut changes) = (base.clone(), Vec::new());
    for _ in 0..random.below(10) {
        let path = path(random.pick(paths));
        match random.below(4) {
            0 => delete(&mut tree, &path, &mut changes),
            1 => {
                let files = paths.iter().map(|name| self::path(name));
                let files: Vec<RelPath> = files.filter(|path| file_at(&tree, path).is_some()).collect();
                let can = !files.is_empty() && !tree.0.contains_key(&path);
                if can
                    && path
                        .ancestors()
                        .all(|directory| tree.0.get(&directory) == Some(&Entry::Directory))
                {
                    let old = &files[random.below(files.len())];
                    let before = tree.0.get(old).cloned();
                    let after = match random.below(2) {
                        0 => before.clone(),
                        _ => Some(entry(random, store)),
                    };
                    record(
                        &mut tree,
                        &mut changes,
                        Change {
                            path,
                            before,
                            after,
                            from: Some(old.clone()),
                        },
                    );
                }
            }
            2 if !tree.0.contains_key(&path) && parents_are_free(&tree, &path) => {
                put(&mut tree, &path, Entry::Directory, &mut changes);
            }
            _ => put(&mut tree, &path, entry(random, store), &mut changes),
        }
    }
    tree.check();
    (changes, tree)
}

fn parents_are_free(tree: &Files, path: &RelPath) -> bool {
    path.ancestors()
        .all(|directory| file_at(tree, &directory).is_none())
}

fn put(tree: &mut Files, path: &RelPath, entry: Entry, changes: &mut Vec<Change>) {
    for directory in path.ancestors() {
        if tree.0.get(&directory) != Some(&Entry::Directory) {
            set(tree, &directory, Some(Entry::Directory), changes);
        }
    }
    if tree.0.get(path) == Some(&Entry::Directory) && !entry.is_directory() {
        delete(tree, path, changes);
    }
    set(tree, path, Some(entry), changes);
}

/// Deletes a path and what is below it, the innermost first.
fn delete(tree: &mut Files, path: &RelPath, changes: &mut Vec<Change>) {
    let below = |other: &&RelPath| *other == path || other.is_below(path);
    let gone: Vec<RelPath> = tree.0.keys().filter(below).cloned().collect();
    gone.iter().rev().for_each(|path| set(tree, path, None, changes));
}

fn set(tree: &mut Files, path: &RelPath, after: Option<Entry>, changes: &mut Vec<Change>) {
    let before = tree.0.get(path).cloned();
    if before != after {
        record(
            tree,
            changes,
            Change {
                path: path.clone(),
                before,
                after,
                from: None,
            },
        );
    }
}

fn record(tree: &mut Files, changes: &mut Vec<Change>, change: Change) {
    tree.record([&change]);
    changes.push(change);
}
