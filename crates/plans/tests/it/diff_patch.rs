//! A patch does with `git apply` what the changes say.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use plans::{Change, Entry, RelPath, fold, write_patch};

use crate::merge_kit::{Files, Random, Store, git, link, path};

/// How many generated trees are patched. Each starts git twice.
const CASES: u64 = 250;

const PATHS: &[&[u8]] = &[
    b"plain",
    b"a b",
    b" space ",
    b"tab\there",
    b"quote\"d",
    b"back\\slash",
    b"\xc3\xbc/\xc3\x9f",
    b"\xff\xfe.bin",
    b"new\nline",
    b"-dash",
    b"a => b",
    b"b/x b/x",
    b"bell\x07\x7f",
    b"d",
    b"d/x",
    b"d/e/f",
    b"{old => new}",
];

#[test]
fn git_applies_generated_patches_and_takes_them_back() {
    for seed in 1..=CASES {
        let (mut random, mut store) = (Random::new(seed), Store::default());
        let base = tree(&mut random, &mut store);
        let mut theirs = base.clone();
        let mut changes = Vec::new();
        for _ in 0..1 + random.below(6) {
            edit(&mut random, &mut store, &mut theirs, &mut changes);
        }
        check(&base, &fold(&changes), &theirs, &store);
    }
}

#[test]
fn git_applies_the_odd_ones() {
    let mut store = Store::default();
    let lines = |count: usize| (0..count).map(|line| format!("{line}\n")).collect::<String>();
    let big: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let cases: Vec<(Option<Entry>, Option<Entry>)> = vec![
        (None, Some(store.file(""))),
        (Some(store.file("")), None),
        (Some(store.file("")), Some(store.file("a"))),
        (Some(store.file("a")), Some(store.file(""))),
        (Some(store.file("a")), Some(store.file("a\n"))),
        (Some(store.file("a\r\nb\r\n")), Some(store.file("a\r\nb\n"))),
        (Some(store.file("a\nb")), Some(store.file("b"))),
        (Some(store.file("\n")), Some(store.file("\n\n"))),
        (Some(store.file("a")), Some(store.file_with("a", 0o755))),
        (Some(store.file_with("a", 0o755)), Some(store.file("b"))),
        (Some(store.file("a")), Some(link("a"))),
        (Some(link("a")), Some(store.file_with("a", 0o755))),
        (Some(link("a")), Some(link("b c"))),
        (Some(link("a")), None),
        (None, Some(store.file(b"\0"))),
        (Some(store.file(b"\0")), None),
        (Some(store.file(b"\0")), Some(store.file("text\n"))),
        (Some(store.file("text\n")), Some(store.file(&big))),
        (Some(store.file(&big)), Some(store.file_with(b"\0", 0o755))),
        (Some(store.file(lines(100))), Some(store.file(lines(50)))),
        (
            Some(store.file(lines(50))),
            Some(store.file("new\n".to_owned() + &lines(100))),
        ),
        (
            Some(store.file("--- a\n+++ b\n@@ -1 +1 @@\n")),
            Some(store.file("-- \n+++ b\ndiff --git a/x b/x\n")),
        ),
        (
            Some(store.file(b"\xff\xfe\n")),
            Some(store.file(b"\xfe\n\\ No newline at end of file\n")),
        ),
    ];
    for name in ["f", "with space", "d\u{e4}/\"q\""] {
        for (before, after) in &cases {
            let name = path(name);
            let around = name.ancestors().map(|directory| (directory, Entry::Directory));
            let around: BTreeMap<_, _> = around.chain([(path("keep"), store.file("k"))]).collect();
            let with = |entry: &Option<Entry>| {
                let entry = entry.clone().map(|entry| (name.clone(), entry));
                Files(around.clone().into_iter().chain(entry).collect())
            };
            let (base, theirs) = (with(before), with(after));
            check(&base, &base.changes_to(&theirs), &theirs, &store);
        }
    }
}

#[test]
fn a_patch_looks_like_one_of_git() {
    let mut store = Store::default();
    let (before, after) = (
        store.file("a\nb\nc\nd\ne\nf\n"),
        store.file_with("a\nb\nc\nd\nE\nf", 0o755),
    );
    let rename = Change {
        path: path("new name"),
        before: Some(before.clone()),
        after: Some(after),
        from: Some(path("old")),
    };
    let directory = Change {
        path: path("d"),
        before: None,
        after: Some(Entry::Directory),
        from: None,
    };
    let binary = Change {
        path: path("\u{e4}"),
        before: None,
        after: Some(store.file(b"\0")),
        from: None,
    };
    // What git does not keep is not in a patch.
    let private = Change {
        path: path("private"),
        before: Some(before),
        after: Some(store.file_with("a\nb\nc\nd\ne\nf\n", 0o600)),
        from: None,
    };
    let text = Change {
        path: path("z"),
        before: None,
        after: Some(store.file("a\nb\n")),
        from: None,
    };
    let mut patch = Vec::new();
    write_patch(&[directory, rename, private, binary, text], &store.0, &mut patch).unwrap();
    let expected = "\
diff --git a/old b/new name
old mode 100644
new mode 100755
similarity index 66%
rename from old
rename to new name
index 0fdf397db08b5cecda1b6394d4fef7395c1933ba..5b20e7b07031196cd796b891c03429790e9e46df
--- a/old
+++ b/new name\t
@@ -2,5 +2,5 @@
 b
 c
 d
-e
-f
+E
+f
\\ No newline at end of file
diff --git \"a/\\303\\244\" \"b/\\303\\244\"
new file mode 100644
index 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d
GIT binary patch
literal 1
Ic${MZ000310RR91

literal 0
Hc$@<O00001

diff --git a/z b/z
new file mode 100644
index 0000000000000000000000000000000000000000..422c2b7ab3b3c668038da977e4e93a5fc623169c
--- /dev/null
+++ b/z
@@ -0,0 +1,2 @@
+a
+b
";
    assert_eq!(String::from_utf8(patch).unwrap(), expected);
}

/// Patches a directory with git, forth and back.
fn check(base: &Files, changes: &[Change], theirs: &Files, store: &Store) {
    let mut patch = Vec::new();
    write_patch(changes, &store.0, &mut patch).unwrap();
    let directory = tempfile::tempdir().unwrap();
    write_tree(base, store, directory.path());
    let text = String::from_utf8_lossy(&patch).into_owned();
    let apply = |arguments: &[&str]| {
        if patch.is_empty() {
            return;
        }
        let mut child = git(directory.path())
            .args(["apply", "--whitespace=nowarn"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&patch).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{text}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    apply(&[]);
    assert_eq!(read_tree(directory.path()), as_git(theirs, store), "{text}");
    apply(&["-R"]);
    // git itself forgets then what kind of file it brings back, with its own patches as well.
    let contents = |tree: Leftover| {
        tree.into_iter()
            .map(|(path, (content, _))| (path, content))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        contents(read_tree(directory.path())),
        contents(as_git(base, store)),
        "{text}"
    );
}

/// What git would keep of something: its content, and whether it can be executed or is a symlink.
type Leftover = BTreeMap<Vec<u8>, (Vec<u8>, &'static str)>;

fn as_git(tree: &Files, store: &Store) -> Leftover {
    let kept = |entry: &Entry| match entry {
        Entry::Directory => None,
        Entry::Symlink { target } => Some((target.0.to_vec(), "symlink")),
        Entry::File { hash, mode, .. } => Some((store.0[hash].to_vec(), kind(*mode))),
    };
    let entries = tree.0.iter();
    entries
        .filter_map(|(path, entry)| Some((path.as_bytes().to_vec(), kept(entry)?)))
        .collect()
}

fn kind(mode: u32) -> &'static str {
    if mode & 0o100 == 0 { "file" } else { "executable" }
}

fn write_tree(tree: &Files, store: &Store, directory: &Path) {
    for (path, entry) in &tree.0 {
        let path = directory.join(path.as_path());
        match entry {
            Entry::Directory => fs::create_dir(path).unwrap(),
            Entry::Symlink { target } => symlink(OsStr::from_bytes(&target.0), path).unwrap(),
            Entry::File { hash, mode, .. } => {
                fs::write(&path, &store.0[hash]).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
    }
}

fn read_tree(root: &Path) -> Leftover {
    let (mut found, mut directories) = (Leftover::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if metadata.is_dir() {
                directories.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec();
                found.insert(name, (target, "symlink"));
            } else {
                found.insert(
                    name,
                    (fs::read(&path).unwrap(), kind(metadata.permissions().mode())),
                );
            }
        }
    }
    found
}

fn entry(random: &mut Random, store: &mut Store) -> Entry {
    const LINES: &[&str] = &[
        "a\n", "b\n", "\n", "  c\n", "d\r\n", "+e\n", "-f\n", "\\ g\n", "\u{e4}\n",
    ];
    match random.below(10) {
        0 => link(random.pick(&["a", "no where", "../x"])),
        1 => {
            let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
            store.file([&[0], bytes.as_slice()].concat())
        }
        _ => {
            let mut text: String = (0..random.below(40)).map(|_| random.pick(LINES)).collect();
            if random.below(4) == 0 {
                text.pop();
            }
            let mode = random.pick(&[0o644, 0o755]);
            store.file_with(text, mode)
        }
    }
}

/// A little different from what it was.
fn edited(random: &mut Random, store: &mut Store, entry: &Entry) -> Entry {
    let Entry::File { hash, mode, .. } = entry else {
        return self::entry(random, store);
    };
    let content = store.0[hash].clone();
    let mut lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    for _ in 0..random.below(4) {
        let at = random.below(lines.len() + 1);
        match random.below(2) {
            0 if at < lines.len() => drop(lines.remove(at)),
            _ => lines.insert(at, b"new\n"),
        }
    }
    let mode = if random.below(5) == 0 {
        *mode ^ 0o111
    } else {
        *mode
    };
    store.file_with(lines.concat(), mode)
}

fn tree(random: &mut Random, store: &mut Store) -> Files {
    let mut tree = Files::default();
    for _ in 0..random.below(10) {
        let path = RelPath::from_bytes(random.pick(PATHS)).unwrap();
        let entry = entry(random, store);
        put(&mut tree, &path, entry, &mut Vec::new());
    }
    tree
}

fn edit(random: &mut Random, store: &mut Store, tree: &mut Files, changes: &mut Vec<Change>) {
    let path = RelPath::from_bytes(random.pick(PATHS)).unwrap();
    let files: Vec<_> = tree.0.iter().filter(|(_, entry)| !entry.is_directory()).collect();
    let chosen = (!files.is_empty()).then(|| files[random.below(files.len())]);
    let chosen = chosen.map(|(path, entry)| (path.clone(), entry.clone()));
    match (random.below(4), chosen) {
        (0, Some((path, entry))) => {
            let after = Some(edited(random, store, &entry));
            set(
                tree,
                changes,
                Change {
                    path,
                    before: Some(entry),
                    after,
                    from: None,
                },
            );
        }
        (1, Some((path, entry))) => {
            set(
                tree,
                changes,
                Change {
                    path,
                    before: Some(entry),
                    after: None,
                    from: None,
                },
            );
        }
        (2, Some((from, entry))) if !tree.0.contains_key(&path) && !path.is_below(&from) => {
            let after = Some(edited(random, store, &entry));
            if path
                .ancestors()
                .all(|directory| tree.0.get(&directory).is_none_or(Entry::is_directory))
            {
                make_directories(tree, &path, changes);
                set(
                    tree,
                    changes,
                    Change {
                        path,
                        before: Some(entry),
                        after,
                        from: Some(from),
                    },
                );
            }
        }
        _ => {
            let entry = entry(random, store);
            put(tree, &path, entry, changes);
        }
    }
}

/// Puts something at a path, unless a directory is there or a file is on the way.
fn put(tree: &mut Files, path: &RelPath, entry: Entry, changes: &mut Vec<Change>) {
    let mut on_the_way = path.ancestors().map(|directory| tree.0.get(&directory));
    let is_free = on_the_way.all(|found| found.is_none_or(Entry::is_directory));
    let before = tree.0.get(path).cloned();
    if is_free && before.as_ref().is_none_or(|before| !before.is_directory()) {
        make_directories(tree, path, changes);
        set(
            tree,
            changes,
            Change {
                path: path.clone(),
                before,
                after: Some(entry),
                from: None,
            },
        );
    }
}

fn make_directories(tree: &mut Files, path: &RelPath, changes: &mut Vec<Change>) {
    for path in path.ancestors() {
        if !tree.0.contains_key(&path) {
            set(
                tree,
                changes,
                Change {
                    path,
                    before: None,
                    after: Some(Entry::Directory),
                    from: None,
                },
            );
        }
    }
}

fn set(tree: &mut Files, changes: &mut Vec<Change>, change: Change) {
    tree.record([&change]);
    changes.push(change);
}
