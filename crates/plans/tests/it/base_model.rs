//! Bases and manifests against plain models, on generated cases.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use plans::{Entry, Manifest, RelPath};
use proptest::prelude::*;

use crate::base_support::{Site, file, files_of, link, naive_walk};

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        3 => (any::<[u8; 3]>(), 0..0o1000_u32).prop_map(|(content, mode)| file(content, mode)),
        1 => any::<[u8; 2]>().prop_map(|target| link(&target)),
        1 => Just(Entry::Directory),
    ]
}

fn rel_path() -> impl Strategy<Value = RelPath> {
    // Few names, so that they meet; with some that sort between a directory and what is in it.
    let name = prop::sample::select(vec![&b"a"[..], b"b", b"a-", b"a.b", b"\xff", b"Z"]);
    prop::collection::vec(name, 1..4).prop_map(|names| RelPath::from_bytes(&names.join(&b'/')).unwrap())
}

fn manifest() -> impl Strategy<Value = Manifest> {
    prop::collection::vec((rel_path(), entry()), 0..30).prop_map(Manifest::from_entries)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_manifest_is_what_was_written(manifest in manifest()) {
        let bytes = manifest.encode();
        let again = Manifest::decode(&bytes).unwrap();
        prop_assert_eq!(again.id(), manifest.id());
        prop_assert_eq!(again, manifest);
    }

    #[test]
    fn bytes_that_are_no_manifest_are_refused(
        manifest in manifest(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut bytes = manifest.encode();
        let at = at.index(bytes.len());
        // Cut off anywhere, it is one no longer, or a shorter one. Changed anywhere, it is not the same.
        if let Ok(shorter) = Manifest::decode(&bytes[..at]) {
            prop_assert!(shorter.len() < manifest.len());
        }
        let before = std::mem::replace(&mut bytes[at], byte);
        if let Ok(other) = Manifest::decode(&bytes) {
            prop_assert_eq!(other == manifest, before == byte);
        }
        drop(Manifest::decode(&noise));
    }

    #[test]
    fn a_difference_leads_from_one_to_the_other(one in manifest(), other in manifest()) {
        let changes = one.changes_to(&other);
        prop_assert_eq!(&one.with(&changes), &other);
        prop_assert!(one.changes_to(&one).is_empty());
        for change in &changes {
            prop_assert_eq!(one.get(&change.path), change.before.as_ref());
            prop_assert_eq!(other.get(&change.path), change.after.as_ref());
            prop_assert_ne!(&change.before, &change.after);
        }
    }

    #[test]
    fn every_entry_lies_in_directories(one in manifest(), changes in prop::collection::vec((rel_path(), prop::option::of(entry())), 0..10)) {
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(path, after)| plans::Change { path, before: None, after, from: None })
            .collect();
        let changed = one.with(&changes);
        for (path, _) in changed.iter() {
            for above in path.ancestors() {
                prop_assert_eq!(changed.get(&above), Some(&Entry::Directory));
            }
        }
    }
}

/// Something that somebody does in a workspace.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Link(usize, u8),
    Remove(usize),
    Directory(usize),
    Mode(usize, bool),
    Rename(usize, usize),
    Take,
}

const PATHS: [&str; 8] = ["a", "a/b", "a/b/c", "d", "d/a", "e", "E", "d/e/f"];

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..PATHS.len();
    prop_oneof![
        4 => (at(), 0..4_u8).prop_map(|(at, content)| Step::Write(at, content)),
        1 => (at(), 0..3_u8).prop_map(|(at, target)| Step::Link(at, target)),
        2 => at().prop_map(Step::Remove),
        1 => at().prop_map(Step::Directory),
        1 => (at(), any::<bool>()).prop_map(|(at, executable)| Step::Mode(at, executable)),
        1 => (at(), at()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => Just(Step::Take),
    ]
}

/// Does it, if it can be done.
fn act(site: &Site, step: &Step) {
    let at = |number: usize| site.workspace().join(PATHS[number]);
    let free = |number: usize| {
        let path = at(number);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            fs::remove_dir_all(&path).ok();
        } else {
            fs::remove_file(&path).ok();
        }
        fs::create_dir_all(path.parent().unwrap()).ok();
    };
    match step {
        Step::Write(number, content) => {
            // In place if it is a file already, as some editors do.
            if !at(*number).is_file() {
                free(*number);
            }
            fs::write(at(*number), [*content; 10]).ok();
        }
        Step::Link(number, target) => {
            free(*number);
            symlink(format!("{target}"), at(*number)).ok();
        }
        Step::Remove(number) => free(*number),
        Step::Directory(number) => {
            fs::create_dir_all(at(*number)).ok();
        }
        Step::Mode(number, executable) => {
            let mode = if *executable { 0o755 } else { 0o644 };
            if fs::symlink_metadata(at(*number)).is_ok_and(|found| found.is_file()) {
                fs::set_permissions(at(*number), fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Step::Rename(from, to) => {
            fs::rename(at(*from), at(*to)).ok();
        }
        Step::Take => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_base_is_what_a_plain_walk_finds(steps in prop::collection::vec(step(), 1..40)) {
        let site = Site::new();
        let mut taken = Vec::new();
        for step in steps.iter().chain([&Step::Take]) {
            act(&site, step);
            if let Step::Take = step {
                let base = site.take().base;
                prop_assert_eq!(&*base.manifest, &naive_walk(&site.workspace()));
                taken.push(base);
            }
        }
        for base in taken {
            prop_assert_eq!(&*base.manifest, &naive_walk(&base.tree), "older bases are as they were");
        }
    }
}

/// Git's manual says that in `a**/b` the two stars are as one. Git itself takes the `a` off first and then finds `**/` at
/// the start of what is left, so that `ab` and `a/c/b` match too. Here it is as the manual says.
fn has_stars_within_a_name(line: &str) -> bool {
    line.match_indices("**").any(|(at, _)| {
        let before = line[..at].trim_end_matches('*');
        let after = line[at..].trim_start_matches('*');
        !before.is_empty() && !before.ends_with('/') && after.starts_with('/')
    })
}

fn rules() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "*", "**", "?", "/", "/", "[ab]", "!", "c", "\\", "a*", " ",
    ]);
    let line = prop::collection::vec(piece, 1..6)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("a named difference", |line| !has_stars_within_a_name(line));
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_ignored_is_what_git_ignores(root in rules(), inner in rules(), tracked in prop::sample::subsequence(FILES.to_vec(), 0..4)) {
        let site = Site::with_git();
        for file in FILES {
            site.write(file, "");
        }
        site.write(".gitignore", &root);
        site.write("a/.gitignore", &inner);
        if !tracked.is_empty() {
            site.git(&[&["add", "--force", "--"], &tracked[..]].concat());
        }
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(site.workspace())
            .output()
            .unwrap();
        let mut expected: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .split_terminator('\0')
            .map(ToOwned::to_owned)
            .collect();
        expected.sort();
        expected.dedup();
        prop_assert_eq!(files_of(&site.take().base.manifest), expected);
    }
}

const FILES: [&str; 12] = [
    "a/a", "a/b", "a/c/a", "a/c/b/a", "b", "c/a", "c/b/b", "c/b/c", "ab", "c/ab", "a/ab/c", "c/!a",
];
