//! Plans that would be in each other's way are told so while they are open.

use plans::{Change, Contents, Entry, OverlapDetector, OverlapPath, fold, merge_changes};

use crate::merge_kit::{Files, Random, Store, path};

fn change(name: &str, before: Option<&Entry>, after: Option<&Entry>) -> Change {
    Change {
        path: path(name),
        before: before.cloned(),
        after: after.cloned(),
        from: None,
    }
}

fn renamed(old: &str, new: &str, before: &Entry, after: &Entry) -> Change {
    Change {
        from: Some(path(old)),
        ..change(new, Some(before), Some(after))
    }
}

#[test]
fn overlaps_are_found_with_their_lines() {
    let mut store = Store::default();
    let base = store.file("a\nb\nc\nd\ne\n");
    let top = store.file("new\nA\nb\nc\nd\ne\n");
    let other_top = store.file("X\nb\nc\nd\ne\n");
    let end = store.file("a\nb\nc\nd\nE\n");
    let nul = store.file(b"\0");
    let executable = store.file_with("a\nb\nc\nd\ne\n", 0o755);
    let directory = Entry::Directory;
    let modify = |name, after| change(name, Some(&base), Some(after));
    let found = |name: &str, lines: Option<(&[u64], &[u64])>| OverlapPath {
        path: path(name),
        conflicts: lines.is_some(),
        first_lines: lines.unwrap_or_default().0.to_vec(),
        second_lines: lines.unwrap_or_default().1.to_vec(),
    };
    let conflict: Option<(&[u64], &[u64])> = Some((&[], &[]));
    let cases = [
        (vec![modify("f", &top)], vec![modify("g", &top)], vec![]),
        (
            vec![modify("f", &top)],
            vec![modify("f", &end)],
            vec![found("f", None)],
        ),
        (
            vec![modify("f", &top)],
            vec![modify("f", &top)],
            vec![found("f", None)],
        ),
        (
            vec![modify("f", &top)],
            vec![modify("f", &other_top)],
            vec![found("f", Some((&[1], &[1])))],
        ),
        (
            vec![modify("f", &executable)],
            vec![modify("f", &end)],
            vec![found("f", None)],
        ),
        (
            vec![modify("f", &top)],
            vec![modify("f", &nul)],
            vec![found("f", conflict)],
        ),
        (
            vec![modify("f", &top)],
            vec![change("f", Some(&base), None)],
            vec![found("f", conflict)],
        ),
        (
            vec![change("f", None, Some(&end))],
            vec![change("f", None, Some(&top))],
            vec![found("f", Some((&[1], &[1])))],
        ),
        // Directories by themselves are in nobody's way.
        (
            vec![
                change("d", None, Some(&directory)),
                change("d/x", None, Some(&end)),
            ],
            vec![
                change("d", None, Some(&directory)),
                change("d/y", None, Some(&end)),
            ],
            vec![],
        ),
        (
            vec![
                change("d", None, Some(&directory)),
                change("d/x", None, Some(&end)),
            ],
            vec![change("d", None, Some(&end))],
            vec![found("d", conflict), found("d/x", conflict)],
        ),
        // One way round it would do, the other way round it would not.
        (
            vec![renamed("f", "g", &base, &base)],
            vec![modify("f", &top)],
            vec![found("f", conflict)],
        ),
        (
            vec![modify("f", &top)],
            vec![renamed("f", "g", &base, &base)],
            vec![found("f", conflict)],
        ),
        (
            vec![renamed("f", "g", &base, &base)],
            vec![renamed("f", "h", &base, &base)],
            vec![found("f", conflict)],
        ),
        (
            vec![renamed("f", "g", &base, &end)],
            vec![renamed("f", "g", &base, &end)],
            vec![found("g", None)],
        ),
    ];
    let mut overlaps = OverlapDetector::default();
    // The second time from memory.
    for _ in 0..2 {
        for (first, second, expected) in &cases {
            let found = overlaps.compare(first, second, &store.0).unwrap();
            assert_eq!(&found, expected, "{first:?}\n{second:?}");
        }
    }
}

/// What the oracle says is what the merge does.
#[test]
fn the_oracle_is_right() {
    let mut store = Store::default();
    let mut overlaps = OverlapDetector::default();
    for seed in 1..=400 {
        let mut random = Random::new(seed);
        let mut content = |random: &mut Random| match random.below(6) {
            0 => None,
            _ => {
                let lines: String = (0..random.below(12))
                    .map(|_| random.pick(&["a\n", "b\n", "c\n", "d\n"]))
                    .collect();
                Some(store.file_with(lines, random.pick(&[0o644, 0o755])))
            }
        };
        let names = ["f", "g", "h"];
        let mut tree = |random: &mut Random, from: Option<&Files>| {
            let mut tree = from.cloned().unwrap_or_default();
            for name in names {
                if from.is_none() || random.below(2) == 0 {
                    tree.0.remove(&path(name));
                    tree.0.extend(content(random).map(|entry| (path(name), entry)));
                }
            }
            tree
        };
        let base = tree(&mut random, None);
        let (one, other) = (tree(&mut random, Some(&base)), tree(&mut random, Some(&base)));
        let (first, second) = (base.changes_to(&one), base.changes_to(&other));
        let merged = merge_changes(&second, &one, &store.0).unwrap();
        let expected = merged.conflicts.iter().map(|conflict| {
            let lines: Vec<u64> = conflict.hunks.iter().map(|hunk| hunk.line).collect();
            (conflict.path.clone(), lines)
        });
        let expected: Vec<_> = expected.collect();
        let found = overlaps.compare(&first, &second, &store.0).unwrap();
        let shared: Vec<_> = first
            .iter()
            .filter(|change| second.iter().any(|other| other.path == change.path))
            .collect();
        assert_eq!(found.len(), shared.len());
        let found: Vec<_> = found.into_iter().filter(|overlap| overlap.conflicts).collect();
        let found: Vec<_> = found
            .into_iter()
            .map(|overlap| (overlap.path, overlap.first_lines))
            .collect();
        assert_eq!(found, expected, "{seed}");
    }
}

/// A plan that changed is compared with the others without looking at any file again that has not changed.
#[test]
fn what_is_known_is_not_read_again() {
    struct Gone;
    impl Contents for Gone {
        fn get(&self, _: eventlog::BlobId) -> std::io::Result<bytes::Bytes> {
            Err(std::io::ErrorKind::NotFound.into())
        }
        fn copy_to(&self, _: eventlog::BlobId, _: &mut dyn plans::ContentSink) -> std::io::Result<()> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }
    let mut store = Store::default();
    let texts: Vec<Entry> = (0..4)
        .map(|line| store.file("0\n1\n2\n3\n4\n5\n6\n".replace(&(2 * line).to_string(), "new")))
        .collect();
    let base = store.file("0\n1\n2\n3\n4\n5\n6\n");
    let plans: Vec<_> = texts
        .iter()
        .map(|text| fold(&[change("f", Some(&base), Some(text))]))
        .collect();
    let mut overlaps = OverlapDetector::default();
    for plan in &plans[1..] {
        overlaps.compare(&plans[0], plan, &store.0).unwrap();
    }
    // These two were never compared with each other, and both were with something else.
    let found = overlaps.compare(&plans[1], &plans[2], &Gone).unwrap();
    assert_eq!((found.len(), found[0].conflicts), (1, false));
    let unseen = store.file("0\n1\n2\n3\nunseen\n5\n6\n");
    overlaps
        .compare(&plans[1], &[change("f", Some(&base), Some(&unseen))], &Gone)
        .unwrap_err();
}
