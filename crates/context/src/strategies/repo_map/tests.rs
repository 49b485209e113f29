//! Questions about small trees.

use kernel::{CancellationToken, Cause, Deadline};

use super::super::test_tree::{Known, Tree, path, shown};
use super::strategy::look;
use crate::answer::Depth;
use crate::strategy::{Hit, StrategyError};

fn find(tree: &Tree, query: &str, focus: &[&str]) -> Vec<Hit> {
    let scope = CancellationToken::new().scope();
    let ask = tree.ask(query, focus);
    let found = look(&ask, Some(&Known::of(tree)), &scope, Deadline::never()).unwrap();
    let again = look(&ask, Some(&Known::turned_around(tree)), &scope, Deadline::never()).unwrap();
    assert_eq!(found, again, "{query:?}");
    assert!(
        found
            .iter()
            .all(|hit| hit.depth == Depth::Signature && hit.score.is_finite())
    );
    found
}

#[track_caller]
fn check(query: &str, focus: &[&str], files: &[(&str, &str)], expected: &[&str]) {
    let tree = Tree::new(files);
    assert_eq!(shown(&find(&tree, query, focus)), expected, "{query:?} {focus:?}");
}

const COAST: [(&str, &str); 5] = [
    (
        "src/harbour.rs",
        "fn dock() { turn_the_lamp(); turn_the_lamp(); let b = Boat; }\n",
    ),
    (
        "src/lighthouse.rs",
        "/// Turns.\npub fn turn_the_lamp() { oil_the_gears(); }\n\nfn unused() {}\n",
    ),
    ("src/boat.rs", "pub struct Boat {\n    keel: u8,\n}\n"),
    ("src/gears.rs", "pub fn oil_the_gears() {}\n"),
    (
        "src/inland.rs",
        "fn plough() { harvest_the_field(); }\nfn harvest_the_field() {}\n",
    ),
];

#[test]
fn what_the_focus_uses_comes_first_and_then_what_that_uses() {
    check(
        "",
        &["src/harbour.rs"],
        &COAST,
        &[
            "src/lighthouse.rs:1-2 used by src/harbour.rs",
            "src/gears.rs:1 used by src/lighthouse.rs",
            "src/harbour.rs:1 its file is in focus",
            "src/boat.rs:1-3 used by src/harbour.rs",
        ],
    );
}

#[test]
fn without_a_focus_it_starts_from_what_the_question_names() {
    for query in ["where is dock() called", "src/harbour.rs", "the harbour"] {
        check(
            query,
            &[],
            &COAST,
            &[
                "src/lighthouse.rs:1-2 used by src/harbour.rs",
                "src/gears.rs:1 used by src/lighthouse.rs",
                "src/boat.rs:1-3 used by src/harbour.rs",
            ],
        );
    }
}

#[test]
fn names_that_say_little_count_little() {
    let many: Vec<(String, String)> = (0..40)
        .map(|number| (format!("m{number}.rs"), "fn common_to_all() {}\n".to_owned()))
        .collect();
    let mut files = vec![
        (
            "a.rs",
            "fn start() { common_to_all(); _hidden_helper(); specific_helper(); plain(); twice_there(); }\n",
        ),
        (
            "b.rs",
            "fn _hidden_helper() {}\nfn specific_helper() {}\nfn plain() {}\n",
        ),
        ("c.rs", "fn twice_there() {}\n"),
        ("d.rs", "fn twice_there() {}\n"),
        // In another language, the same name means something else.
        ("e.py", "def specific_helper():\n    pass\n"),
    ];
    files.extend(many.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    check(
        "start()",
        &[],
        &files,
        &[
            "b.rs:2 used by a.rs",
            "c.rs:1 used by a.rs",
            "d.rs:1 used by a.rs",
            "b.rs:3 used by a.rs",
            "b.rs:1 used by a.rs",
        ],
    );
}

#[test]
fn of_many_that_define_a_name_the_nearest_are_meant() {
    let many: Vec<(String, String)> = (0..40)
        .map(|number| {
            (
                format!("crates/m{number}/src/error.rs"),
                "struct CommonError;\n".to_owned(),
            )
        })
        .collect();
    let mut files = vec![(
        "crates/m7/src/lib.rs",
        "fn run() -> CommonError { CommonError }\n",
    )];
    files.extend(many.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    check(
        "",
        &["crates/m7/src/lib.rs"],
        &files,
        &[
            "crates/m7/src/error.rs:1 used by crates/m7/src/lib.rs",
            "crates/m7/src/lib.rs:1 its file is in focus",
        ],
    );
}

#[test]
fn files_beside_the_index_are_linked_as_they_are() {
    let old = Tree::new(&COAST);
    let new = Tree::new(&[
        ("src/harbour.rs", "fn dock() { oil_the_gears(); }\n"),
        ("src/gears.rs", "\nfn oil_the_gears() {}\n"),
    ]);
    let mut ask = new.ask("", &["src/harbour.rs"]);
    ask.searched.beside_index = [path("src/gears.rs"), path("src/harbour.rs")].into();
    let scope = CancellationToken::new().scope();
    let found = look(&ask, Some(&Known::of(&old)), &scope, Deadline::never()).unwrap();
    assert_eq!(
        shown(&found),
        [
            "src/gears.rs:2 used by src/harbour.rs",
            "src/harbour.rs:1 its file is in focus"
        ]
    );
}

#[test]
fn a_circle_ends_and_is_the_same_each_time() {
    let files: Vec<(String, String)> = (0..200)
        .map(|number| {
            let next = (number + 1) % 200;
            let text = format!("fn station_{number:03}() {{ station_{next:03}(); station_000(); }}\n");
            (format!("line/s{number:03}.rs"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let found = find(&Tree::new(&files), "", &["line/s000.rs"]);
    assert_eq!(shown(&found)[0], "line/s001.rs:1 used by line/s000.rs");
}

#[test]
fn no_index_no_start_and_a_cancelled_scope_are_said() {
    let tree = Tree::new(&COAST);
    let known = Known::of(&tree);
    let token = CancellationToken::new();
    let scope = token.scope();
    let look = |index, query: &str| look(&tree.ask(query, &[]), index, &scope, Deadline::never());
    let not = |why: &str| Err(StrategyError::NotApplicable(why.to_owned()));
    assert_eq!(look(None, "dock"), not("there is no index yet"));
    assert_eq!(
        look(Some(&known), "nothing_of_this_name"),
        not("no file to start from")
    );
    token.cancel(Cause::new("test", "enough"));
    assert_eq!(look(Some(&known), "dock"), Err(StrategyError::Cancelled));
}
