//! Texts merge as git merges them.

use std::path::Path;

use plans::{TextMerge, is_text, merge_text};
use protocol::PlanConflictHunk;

use crate::merge_kit::{Random, git};

/// How many generated cases are compared with git. Each starts a process.
const CASES: usize = 1000;
/// How many cases of the project's own history are compared.
const HISTORY_CASES: usize = 100;

#[test]
fn generated_texts_merge_as_with_git() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(1);
    let mut conflicts = 0;
    for case in 0..CASES {
        let alphabet = ALPHABETS[case % ALPHABETS.len()];
        let mut texts = three_texts(&mut random, alphabet);
        for text in &mut texts {
            if random.below(8) == 0 {
                text.pop();
            }
        }
        conflicts += usize::from(same_as_git(directory.path(), &texts).is_none());
    }
    // Otherwise the cases say little.
    assert!(
        (CASES / 10..CASES * 9 / 10).contains(&conflicts),
        "{conflicts} conflicts"
    );
}

/// For each version of a file: the next one, and the one before it taken back.
#[test]
fn the_history_of_this_project_merges_as_with_git() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = |arguments: &[&str]| {
        let output = git(root)
            .env_remove("GIT_CEILING_DIRECTORIES")
            .args(arguments)
            .output()
            .unwrap();
        output.status.success().then_some(output.stdout)
    };
    let Some(log) = output(&[
        "log",
        "--format=%x00%H",
        "--name-only",
        "--no-renames",
        "--",
        ":(top)*.rs",
        ":(top)*.md",
    ]) else {
        return; // It is not a repository here, so there is no history.
    };
    let mut versions = std::collections::BTreeMap::<String, Vec<String>>::new();
    for commit in String::from_utf8(log).unwrap().split('\0').skip(1) {
        let (commit, files) = commit.split_once('\n').unwrap();
        for file in files.lines().filter(|line| !line.is_empty()) {
            versions
                .entry(file.to_owned())
                .or_default()
                .push(format!("{commit}:{file}"));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let triples = versions.values().flat_map(|versions| versions.windows(3));
    for triple in triples.take(HISTORY_CASES) {
        let texts: Vec<_> = triple.iter().filter_map(|name| output(&["show", name])).collect();
        if let Ok([theirs, base, ours]) = <[_; 3]>::try_from(texts) {
            same_as_git(directory.path(), &[base, ours, theirs]);
        }
    }
}

#[test]
fn ends_of_lines_are_kept() {
    for (base, ours, theirs, expected) in [
        (
            "a\r\nb\r\nc\r\n",
            "A\r\nb\r\nc\r\n",
            "a\r\nb\r\nC\r\n",
            "A\r\nb\r\nC\r\n",
        ),
        ("a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"),
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nc", "A\nb\nc"),
        ("a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n"),
        ("a\r\nb\nc\r\n", "a\r\nb\nc\n", "A\r\nb\nc\r\n", "A\r\nb\nc\n"),
        ("", "", "a", "a"),
        ("a\n", "", "", ""),
        ("a\nb\n", "x\nb\n", "x\nb\n", "x\nb\n"),
        ("\u{fffd}\n\n\n", "\u{fffd}\n\n\nx", "y\n\n\n", "y\n\n\nx"),
    ] {
        let merged = merge_text(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        assert_eq!(
            merged,
            TextMerge::Clean(expected.into()),
            "{base:?} {ours:?} {theirs:?}"
        );
    }
}

#[test]
fn a_conflict_says_where_and_what() {
    let hunk = |line, base: &str, ours: &str, theirs: &str| PlanConflictHunk {
        line,
        base: base.into(),
        ours: ours.into(),
        theirs: theirs.into(),
    };
    for (base, ours, theirs, expected) in [
        ("a\nb\n", "x\nb\n", "y\nb\n", vec![hunk(1, "a\n", "x\n", "y\n")]),
        // Changes that touch are one place.
        (
            "a\nb\nc\nd\n",
            "new\na\nB\nc\nd\n",
            "a\nb\nC\nd\n",
            vec![hunk(3, "b\nc\n", "B\nc\n", "b\nC\n")],
        ),
        (
            "a\nb\nc\n",
            "b\nc\n",
            "A\nb\nC\n",
            vec![hunk(1, "a\n", "", "A\n")],
        ),
        ("", "x", "y", vec![hunk(1, "", "x", "y")]),
        (
            "a\nb\nc\n",
            "1\nb\n1\n",
            "2\nb\n2\n",
            vec![hunk(1, "a\n", "1\n", "2\n"), hunk(3, "c\n", "1\n", "2\n")],
        ),
    ] {
        let merged = merge_text(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        assert_eq!(
            merged,
            TextMerge::Conflicted(expected),
            "{base:?} {ours:?} {theirs:?}"
        );
    }
}

#[test]
fn a_report_is_bounded() {
    let many = |word: &str| {
        (0..200)
            .map(|line| format!("{word}\nsame {line}\n"))
            .collect::<String>()
    };
    let TextMerge::Conflicted(hunks) =
        merge_text(many("a").as_bytes(), many("b").as_bytes(), many("c").as_bytes())
    else {
        panic!("they conflict");
    };
    assert_eq!(hunks.len(), 64);

    let long = |letter: &str| letter.repeat(100_000);
    let TextMerge::Conflicted(hunks) = merge_text(
        long("a").as_bytes(),
        long("b").as_bytes(),
        long("\u{e4}").as_bytes(),
    ) else {
        panic!("they conflict");
    };
    assert_eq!(hunks[0].ours, "b".repeat(16 * 1024) + "\n[...]\n");
    assert!(hunks[0].theirs.len() < 17 * 1024 && hunks[0].theirs.ends_with("\u{e4}\n[...]\n"));
}

#[test]
fn a_nul_near_the_beginning_makes_it_binary() {
    let with_nul_at = |at: usize| {
        let mut content = vec![b'x'; 10_000];
        content[at] = 0;
        is_text(&content)
    };
    assert_eq!([0, 7999, 8000].map(with_nul_at), [false, false, true]);
    assert!(is_text(b"") && is_text(b"\xff\xfe"));
}

/// Small ones make ambiguous texts, in which it counts how changes are moved up and down; the last ones look like code.
const ALPHABETS: &[&[&str]] = &[
    &["a\n", "b\n"],
    &["a\n", "b\n", "c\n"],
    &["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n", "h\n"],
    &[
        "\n",
        "}\n",
        "    }\n",
        "    x();\n",
        "fn a() {\n",
        "        y\n",
        "    if b {\n",
        "\t\tz\n",
    ],
    &["a\r\n", "a\n", "b\r\n", "b\n", "\r\n", "\n"],
];

fn three_texts(random: &mut Random, alphabet: &[&str]) -> [Vec<u8>; 3] {
    let base: Vec<&str> = (0..random.below(50)).map(|_| random.pick(alphabet)).collect();
    let mut edited = || {
        let mut lines = base.clone();
        for _ in 0..random.below(6) {
            let at = random.below(lines.len() + 1);
            match random.below(7) {
                // A part of it is written anew, so that one change can meet several.
                0 => {
                    let end = at + random.below(lines.len() + 1 - at);
                    let new: Vec<&str> = (0..random.below(9)).map(|_| random.pick(alphabet)).collect();
                    lines.splice(at..end, new);
                }
                1 | 2 => lines.insert(at, random.pick(alphabet)),
                3 | 4 if at < lines.len() => drop(lines.remove(at)),
                _ if at < lines.len() => lines[at] = random.pick(alphabet),
                _ => {}
            }
        }
        lines.concat().into_bytes()
    };
    let (ours, theirs) = (edited(), edited());
    [base.concat().into_bytes(), ours, theirs]
}

/// Merges with git as well, and says what came out if it is not a conflict.
fn same_as_git(directory: &Path, texts: &[Vec<u8>; 3]) -> Option<Vec<u8>> {
    for (name, text) in ["base", "ours", "theirs"].iter().zip(texts) {
        std::fs::write(directory.join(name), text).unwrap();
    }
    let output = git(directory)
        .args(["merge-file", "-p", "ours", "base", "theirs"])
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    assert!((0..128).contains(&code), "{output:?}");
    let [base, ours, theirs] = texts;
    let merged = match merge_text(base, ours, theirs) {
        TextMerge::Clean(merged) => Some(merged),
        TextMerge::Conflicted(hunks) => {
            assert!(!hunks.is_empty());
            None
        }
    };
    let quoted = texts.each_ref().map(|text| String::from_utf8_lossy(text));
    assert_eq!(merged, (code == 0).then_some(output.stdout), "{quoted:?}");
    merged
}
