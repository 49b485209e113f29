//! Compares segments with plain maps, intact and corrupt.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kernel::CancellationToken;
use proptest::prelude::*;
use tempfile::TempDir;

use super::{KeyCursor, Segment, SegmentWriter};
use crate::index::entry::{FileEntry, Holds, Stamp};
use crate::index::merge::merge;
use crate::index::part::{Content, Part};
use crate::path::TreePath;

type Files = BTreeMap<String, (BTreeSet<u64>, Vec<u8>)>;
type Lists = BTreeMap<u64, Vec<u32>>;

fn keys() -> impl Strategy<Value = u64> {
    // A few keys that many files have, many keys that few files have, and the extremes.
    prop_oneof![
        0..40_u64,
        any::<u64>(),
        Just(u64::MAX),
        (0..600_u64).prop_map(|key| key << 40)
    ]
}

fn files(most: usize) -> impl Strategy<Value = Files> {
    let outline = prop::collection::vec(any::<u8>(), 0..30);
    let file = (prop::collection::btree_set(keys(), 0..60), outline);
    prop::collection::btree_map("[a-c]{1,3}(/[a-c\u{e4}\u{f6}]{1,4}){0,2}", file, 1..most)
}

fn entry(path: &str) -> FileEntry {
    FileEntry {
        path: TreePath::new(path).unwrap(),
        stamp: Stamp::default(),
        holds: Holds::Text,
    }
}

fn lists(files: &Files) -> Lists {
    let mut lists = Lists::new();
    for (number, (keys, _)) in (0..).zip(files.values()) {
        for key in keys {
            lists.entry(*key).or_default().push(number);
        }
    }
    lists
}

fn write(directory: &TempDir, files: &Files) -> Segment {
    let mut writer = SegmentWriter::new(directory.path(), files.len()).unwrap();
    for (_, outline) in files.values() {
        writer.outline(outline).unwrap();
    }
    for (key, list) in lists(files) {
        writer.key(key, &list).unwrap();
    }
    let entries: Vec<FileEntry> = files.keys().map(|path| entry(path)).collect();
    writer.finish(directory.path(), &entries).unwrap()
}

fn read(segment: &Segment) -> (Files, Lists) {
    let mut cursor = KeyCursor::new(segment);
    let (mut lists, mut list) = (Lists::new(), Vec::new());
    while let Some(key) = cursor.next(&mut list).unwrap() {
        let mut same = Vec::new();
        segment.with(key, &mut same).unwrap();
        assert_eq!((&same, segment.count(key).unwrap()), (&list, list.len()));
        lists.insert(key, std::mem::take(&mut list));
    }
    let mut files = Files::new();
    for (number, entry) in (0..).zip(segment.entries()) {
        let keys = lists.iter().filter(|(_, list)| list.contains(&number));
        let keys = keys.map(|(key, _)| *key).collect();
        files.insert(entry.path.to_string(), (keys, segment.outline(number).unwrap()));
    }
    (files, lists)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn what_was_written_is_read(files in files(80), other in keys()) {
        let directory = tempfile::tempdir().unwrap();
        let written = write(&directory, &files);
        let segment = Segment::open(directory.path(), written.name()).unwrap();
        prop_assert_eq!(segment.bytes(), written.bytes());
        let expected = lists(&files);
        prop_assert_eq!(segment.count(other).unwrap(), expected.get(&other).map_or(0, Vec::len));
        prop_assert_eq!(read(&segment), (files, expected));
    }

    #[test]
    fn what_is_merged_is_what_was_alive(parts in prop::collection::vec(files(20), 1..5), dead in prop::collection::btree_set("[a-c]{1,3}", 0..10)) {
        let directory = tempfile::tempdir().unwrap();
        let mut expected = Files::new();
        let mut inputs: Vec<Part> = Vec::new();
        // A file counts in at most one part: the last.
        for files in &parts {
            for input in &mut inputs {
                files.keys().filter_map(|path| input.find(path)).collect::<Vec<_>>().into_iter().for_each(|file| input.kill(file));
            }
            inputs.push(Part::new(Content::Segment(write(&directory, files))));
            expected.extend(files.clone());
        }
        for path in &dead {
            expected.remove(path);
            inputs.iter_mut().for_each(|input| if let Some(file) = input.find(path) { input.kill(file) });
        }
        let merged = merge(inputs, directory.path(), &CancellationToken::new().scope()).unwrap();
        let found = merged.segment.as_ref().map(read).unwrap_or_default();
        prop_assert_eq!(found, (expected.clone(), lists(&expected)));
    }

    #[test]
    fn a_broken_segment_is_refused_and_never_a_panic(
        files in files(20), at in any::<prop::sample::Index>(), value in 1..=u8::MAX, cut: bool, near_the_end: bool,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let written = write(&directory, &files);
        let path = directory.path().join(written.name());
        let mut bytes = fs::read(&path).unwrap();
        let at = if near_the_end { bytes.len() - 1 - at.index(bytes.len().min(200)) } else { at.index(bytes.len()) };
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= value;
        }
        fs::write(&path, &bytes).unwrap();
        prop_assert!(Segment::open(directory.path(), written.name()).is_err());
        // Even without the check, it would only be an error.
        let Ok(segment) = Segment::open_unchecked(&path, written.name().to_owned()) else {
            return Ok(());
        };
        let mut list = Vec::new();
        for key in lists(&files).keys() {
            list.clear();
            drop(segment.with(*key, &mut list));
        }
        for file in 0..files.len() as u32 {
            drop(segment.outline(file));
        }
        let mut cursor = KeyCursor::new(&segment);
        while cursor.next(&mut list).is_ok_and(|key| key.is_some()) {
            list.clear();
        }
    }
}
