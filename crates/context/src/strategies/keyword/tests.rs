//! Questions about small trees, with an index and without one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{CancellationToken, Cause, Clock, Deadline, ManualClock, Scope};
use proptest::prelude::{ProptestConfig, Strategy as _, proptest};

use super::postings::Postings;
use super::strategy::look;
use crate::index::{FileId, Key};
use crate::lines::Lines;
use crate::path::TreePath;
use crate::query::{Query, parts_of};
use crate::strategy::{Ask, Hit, SearchTree, StrategyError};
use crate::view::{FileText, NotText, Since, View};

/// A tree in memory. A text with a NUL in it is binary.
#[derive(Clone, Debug, Default)]
struct Tree {
    files: BTreeMap<TreePath, FileText>,
    /// Called for every file that is read.
    on_read: Option<fn(&Tree)>,
    token: CancellationToken,
    clock: Option<Arc<ManualClock>>,
}

impl View for Tree {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        if let Some(on_read) = self.on_read {
            on_read(self);
        }
        let text = self.files.get(path).ok_or(NotText::Missing)?;
        if text.contains('\0') {
            Err(NotText::Binary)
        } else {
            Ok(Arc::clone(text))
        }
    }

    /// It doesn't check the scope: `visit` has to.
    fn walk(&self, _: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        for path in self.files.keys() {
            if !visit(path.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn since(&self) -> Since {
        Since::default()
    }
}

#[derive(Debug)]
struct Known {
    paths: Vec<TreePath>,
    keys: BTreeMap<Key, BTreeSet<FileId>>,
}

impl Known {
    fn of(tree: &Tree) -> Self {
        let paths: Vec<TreePath> = tree
            .files
            .keys()
            .filter(|path| tree.read(path).is_ok())
            .cloned()
            .collect();
        let mut keys: BTreeMap<Key, BTreeSet<FileId>> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            let file = FileId(u32::try_from(number).unwrap());
            let text = &tree.files[path];
            let trigrams = text
                .as_bytes()
                .windows(3)
                .map(|three| Key::trigram([three[0], three[1], three[2]]));
            let names = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let names = names.flat_map(|name| {
                let parts = parts_of(name).into_iter().map(|part| Key::part(&part));
                parts.chain([Key::mentioned(name)]).collect::<Vec<_>>()
            });
            for key in trigrams.chain(names) {
                keys.entry(key).or_default().insert(file);
            }
        }
        Self { paths, keys }
    }
}

impl Postings for Known {
    fn all(&self) -> Vec<FileId> {
        (0..u32::try_from(self.paths.len()).unwrap())
            .map(FileId)
            .collect()
    }

    fn number(&self, path: &TreePath) -> Option<FileId> {
        let number = self.paths.binary_search(path).ok()?;
        Some(FileId(u32::try_from(number).unwrap()))
    }

    fn place(&self, file: FileId) -> Option<&TreePath> {
        self.paths.get(file.0 as usize)
    }

    fn count(&self, key: Key) -> io::Result<usize> {
        Ok(self.keys.get(&key).map_or(0, BTreeSet::len))
    }

    fn with(&self, key: Key) -> io::Result<Vec<FileId>> {
        Ok(self.keys.get(&key).into_iter().flatten().copied().collect())
    }
}

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files
        .iter()
        .map(|(name, text)| (path(name), FileText::from(*text)));
    Tree {
        files: files.collect(),
        ..Tree::default()
    }
}

fn ask(tree: &Tree, query: &str, beside: &[TreePath]) -> Ask {
    Ask {
        query: Query::parse(query),
        focus: Vec::new(),
        searched: SearchTree {
            root: PathBuf::from("/tree"),
            view: Arc::new(tree.clone()),
            index: None,
            beside_index: beside.into(),
        },
        most_hits: 100,
    }
}

/// The hits, which must be the same with and without an index.
fn find(tree: &Tree, query: &str) -> Vec<Hit> {
    let ask = ask(tree, query, &[]);
    let scope = tree.token.scope();
    let with = look(&ask, Some(&Known::of(tree)), &scope, Deadline::never());
    let without = look(&ask, None::<&Known>, &scope, Deadline::never());
    assert_eq!(with, without, "{query:?}");
    with.unwrap_or_default()
}

fn shown(hits: &[Hit]) -> Vec<String> {
    let lines = |lines: Option<Lines>| lines.map_or(String::new(), |lines| format!(":{lines}"));
    hits.iter()
        .map(|hit| format!("{}{}", hit.path, lines(hit.lines)))
        .collect()
}

#[test]
fn what_fits_better_comes_first() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        // A definition before a mention, and a name before its words.
        (
            "ParseConfig",
            &[
                ("a.rs", "let x = ParseConfig::new();\n"),
                ("b.rs", "\n/// Reads it.\npub struct ParseConfig;\n"),
                ("c.rs", "parse the\nconfig\n"),
                ("d.rs", "nothing\n"),
            ],
            &["b.rs:3", "a.rs:1"],
        ),
        // Other spellings of a name, and words that form one.
        (
            "parseConfig",
            &[
                ("a.py", "def parse_config():\n"),
                ("b.py", "parse = 1\nconfig = 2\n"),
                ("c.py", "pass\n"),
            ],
            &["a.py:1"],
        ),
        // The words of a name, if the name itself doesn't occur.
        (
            "parseConfig",
            &[
                ("a.py", "config = 2\n"),
                ("b.py", "parse = 1\nconfig = 2\n"),
                ("c.py", "pass\n"),
            ],
            &["b.py:1-2", "a.py:1"],
        ),
        (
            "is empty",
            &[
                ("a.rs", "// empty\n"),
                ("b.rs", "fn is_empty() {}\n"),
                ("c.rs", "x\n"),
                ("d.rs", "y\n"),
            ],
            &["b.rs:1", "a.rs:1"],
        ),
        // Words close together before words far apart.
        (
            "token bucket refill",
            &[
                (
                    "a.rs",
                    "token\n\n\n\n\n\n\n\n\n\n\n\n\n\nbucket\n\n\n\n\n\n\n\n\n\n\n\n\n\nrefill\n",
                ),
                (
                    "b.rs",
                    "\nthe token is for the bucket\nrefill\n// and more, so that it is the longer one of the two files\n",
                ),
                ("c.rs", ""),
                ("d.rs", "x"),
            ],
            &["b.rs:2-3", "a.rs:1", "a.rs:15", "a.rs:29"],
        ),
        // A whole word before a part of one, and other forms of it.
        (
            "parsing",
            &[
                ("a.rs", "comparsing\n"),
                ("b.rs", "the parser\n"),
                ("c.rs", "parsing\n"),
                ("d.rs", "x\n"),
            ],
            &["c.rs:1", "b.rs:1", "a.rs:1"],
        ),
        // A match in the path adds to the score of a file, and is enough on its own.
        (
            "breaker",
            &[
                ("src/a.rs", "// breaker\n"),
                ("src/breaker.rs", "// breaker\n"),
                ("breaker/x.rs", "y\n"),
                ("z.rs", "z"),
            ],
            &["src/breaker.rs:1", "src/a.rs:1", "breaker/x.rs"],
        ),
        // Tests, documents and generated files count less.
        (
            "widget",
            &[
                ("src/a.rs", "widget\n"),
                ("tests/a.rs", "widget\n"),
                ("README.md", "widget\n"),
                ("Cargo.lock", "widget\n"),
                ("other.rs", "x"),
            ],
            &["src/a.rs:1", "tests/a.rs:1", "README.md:1", "Cargo.lock:1"],
        ),
        (
            "widget docs",
            &[
                ("src/a.rs", "widget\n"),
                ("widget.md", "widget\n"),
                ("other.rs", "x"),
                ("more.rs", "x"),
            ],
            &["widget.md:1", "src/a.rs:1"],
        ),
        // A file named in the question comes first, with the named line.
        (
            "src/b.rs:12 widget",
            &[
                ("src/a.rs", "widget\nwidget\n"),
                ("src/b.rs", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n"),
                ("src/c.rs", "x"),
            ],
            &["src/b.rs:2-14", "src/a.rs:1-2"],
        ),
        // Words that are too short for the index.
        (
            "io",
            &[("a.rs", "ion\n"), ("b.rs", "use std::io;\n"), ("c.rs", "x\n")],
            &["b.rs:1"],
        ),
        // Nothing to find.
        (
            "absent",
            &[("a.rs", "x\n"), ("b.bin", "absent\0"), ("c.rs", "")],
            &[],
        ),
        (
            "größe",
            &[("a.rs", "die Größe und größe\n"), ("b.rs", "grosse\n")],
            &["a.rs:1"],
        ),
        (
            "\"no such file\"",
            &[
                ("a.rs", "no such\nfile\n"),
                ("b.rs", "No such file\n"),
                ("c.rs", ""),
            ],
            &["b.rs:1"],
        ),
    ];
    for (query, files, expected) in cases {
        assert_eq!(shown(&find(&tree(files), query)), *expected, "{query}");
    }
}

#[test]
fn a_file_has_a_few_places_and_the_answer_a_bound() {
    let far = "widget\n".to_owned() + &"\n".repeat(30);
    let tree = tree(&[("a.rs", &far.repeat(10)), ("b.rs", "x")]);
    assert_eq!(shown(&find(&tree, "widget")), ["a.rs:1", "a.rs:32", "a.rs:63"]);
    let bounded = Ask {
        most_hits: 2,
        ..ask(&tree, "widget", &[])
    };
    let hits = look(
        &bounded,
        Some(&Known::of(&tree)),
        &tree.token.scope(),
        Deadline::never(),
    )
    .unwrap();
    assert_eq!(shown(&hits), ["a.rs:1", "a.rs:32"]);
}

#[test]
fn what_the_index_only_suspects_is_not_shown() {
    // `b.rs` contains all trigrams of the name, but not the name itself.
    let tree = tree(&[
        ("a.rs", "abc_abd\n"),
        ("b.rs", "abc abd c_abd abc_a\n"),
        ("c.rs", "abc\n"),
    ]);
    assert_eq!(shown(&find(&tree, "abc_abd")), ["a.rs:1"]);
}

#[test]
fn files_beside_the_index_are_looked_into_without_it() {
    let before = tree(&[
        ("a.rs", "widget\n"),
        ("b.rs", "x\n"),
        ("gone.rs", "widget\n"),
        ("d.rs", "widget\n"),
        ("e.rs", "widget\n"),
    ]);
    let now = tree(&[
        ("a.rs", "x\n"),
        ("b.rs", "\nwidget\n"),
        ("new.rs", "widget\n"),
        ("d.rs", "widget\n"),
        ("e.rs", "widget\n"),
    ]);
    let beside = ["a.rs", "b.rs", "e.rs", "gone.rs", "new.rs"].map(path);
    let hits = look(
        &ask(&now, "widget", &beside),
        Some(&Known::of(&before)),
        &now.token.scope(),
        Deadline::never(),
    );
    assert_eq!(shown(&hits.unwrap()), ["d.rs:1", "e.rs:1", "new.rs:1", "b.rs:2"]);
}

#[test]
fn words_that_are_everywhere_still_choose_the_files_that_hold_most_of_them() {
    let mut files: Vec<(String, String)> = (0..1000)
        .map(|number| (format!("f{number:04}.rs"), "common\n".to_owned()))
        .collect();
    files[700].1 = "common\nusual\n".to_owned();
    files[300].1 = "common rare_thing\n".to_owned();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let hits = shown(&find(&tree(&files), "common usual rare_thing"));
    assert_eq!(hits[..2], ["f0300.rs:1", "f0700.rs:1-2"]);
    assert_eq!(
        shown(&find(&tree(&files), "common"))[..2],
        ["f0000.rs:1", "f0001.rs:1"]
    );
}

#[test]
fn a_question_without_a_word_is_not_for_it() {
    let tree = tree(&[("a.rs", "x")]);
    let answer = look(
        &ask(&tree, "?!", &[]),
        None::<&Known>,
        &tree.token.scope(),
        Deadline::never(),
    );
    assert!(
        matches!(answer, Err(StrategyError::NotApplicable(_))),
        "{answer:?}"
    );
}

#[test]
fn a_cancelled_scope_ends_it_between_two_files() {
    let mut tree = tree(&[("a.rs", "widget"), ("b.rs", "widget"), ("c.rs", "widget")]);
    let known = Known::of(&tree);
    tree.on_read = Some(|tree| {
        assert!(
            tree.token.cancel(Cause::new("test", "enough")),
            "a file was read after the cancel"
        )
    });
    for index in [Some(&known), None] {
        tree.token.reset().unwrap();
        let scope = tree.token.scope();
        assert_eq!(
            look(&ask(&tree, "widget", &[]), index, &scope, Deadline::never()),
            Err(StrategyError::Cancelled)
        );
        assert!(scope.is_cancelled());
    }
}

#[test]
fn when_the_deadline_nears_it_answers_with_what_it_has() {
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}.rs")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "widget")).collect();
    let clock = ManualClock::new();
    let mut tree = tree(&files);
    tree.clock = Some(Arc::clone(&clock));
    tree.on_read = Some(|tree| {
        tree.clock
            .iter()
            .for_each(|clock| clock.advance(Duration::from_millis(10)))
    });
    let shared: Arc<dyn Clock> = clock;
    let deadline = Deadline::after(&shared, Duration::from_millis(100));
    // Eight files are found in 80 ms, and two of them are read in the 15 ms after that.
    let hits = look(
        &ask(&tree, "widget", &[]),
        None::<&Known>,
        &tree.token.scope(),
        deadline,
    )
    .unwrap();
    assert_eq!(shown(&hits), ["f00.rs:1", "f01.rs:1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_file_with_a_rare_word_is_found(
        texts in proptest::collection::vec("[a-z_ A-Zäß\n]{0,60}", 1..40),
        rare in "[a-z]{3,9}".prop_filter("no stop word", |word| Query::parse(word).terms.len() == 1 && word.len() > 2),
        holders in proptest::collection::btree_set(0_usize..40, 0..8),
        query in "[a-zA-Z_ ]{0,20}",
    ) {
        let names: Vec<String> = (0..texts.len()).map(|number| format!("f{number}.rs")).collect();
        let texts: Vec<String> = texts.iter().enumerate().map(|(number, text)| {
            if holders.contains(&number) { format!("{text}\nlet {rare} = 1;\n") } else { text.clone() }
        }).collect();
        let files: Vec<(&str, &str)> = names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let found = find(&tree(&files), &format!("{rare} {query}"));
        for holder in holders.iter().filter(|holder| **holder < names.len()) {
            let line = texts[*holder].lines().count();
            let is_found = found.iter().any(|hit| hit.path.as_str() == names[*holder]);
            assert!(is_found, "{} {line}", names[*holder]);
        }
    }
}
