//! Questions about small trees, with an index and without one.

use kernel::{CancellationToken, Cause, Deadline};

use super::super::test_tree::{Known, Tree, path, shown};
use super::strategy::look;
use crate::answer::Depth;
use crate::lines::Lines;
use crate::strategy::{Hit, StrategyError};

/// The hits with an index, whatever the numbers of its files are.
fn indexed(tree: &Tree, query: &str, focus: &[&str]) -> Vec<Hit> {
    let scope = CancellationToken::new().scope();
    let ask = tree.ask(query, focus);
    let found = look(&ask, Some(&Known::of(tree)), &scope, Deadline::never()).unwrap();
    let again = look(&ask, Some(&Known::turned_around(tree)), &scope, Deadline::never()).unwrap();
    assert_eq!(found, again, "{query:?}");
    found
}

fn walked(tree: &Tree, query: &str, focus: &[&str]) -> Vec<Hit> {
    let scope = CancellationToken::new().scope();
    let ask = tree.ask(query, focus);
    look(&ask, None::<&Known>, &scope, Deadline::never()).unwrap()
}

#[track_caller]
fn check(query: &str, focus: &[&str], files: &[(&str, &str)], expected: &[&str]) {
    let tree = Tree::new(files);
    assert_eq!(
        shown(&indexed(&tree, query, focus)),
        expected,
        "{query:?}, indexed"
    );
    assert_eq!(shown(&walked(&tree, query, focus)), expected, "{query:?}, walked");
}

#[test]
fn an_exact_name_comes_first_and_then_what_is_like_it() {
    check(
        "ParseConfig",
        &[],
        &[
            ("a.rs", "fn uses() { ParseConfig::new(); }\n"),
            (
                "b.rs",
                "/// It.\npub struct ParseConfig;\n\nimpl ParseConfig {\n    fn new() {}\n}\n",
            ),
            ("c.py", "def parse_config():\n    pass\n"),
            ("d.rs", "fn parse_config_file() {}\n"),
            ("e.rs", "struct Parseconfig;\n"),
            ("f.rs", "struct Config;\nstruct Parser;\n"),
        ],
        &[
            "b.rs:1-2 defines ParseConfig (type)",
            "e.rs:1 defines Parseconfig (type)",
            "c.py:1-2 defines parse_config (function)",
            "b.rs:4-6 defines ParseConfig (implementation)",
            "d.rs:1 defines parse_config_file (function)",
        ],
    );
}

#[test]
fn what_a_name_is_inside_of_decides() {
    check(
        "Config::load_all",
        &[],
        &[
            ("a.rs", "impl Other {\n    fn load_all() {}\n}\n"),
            ("b.rs", "impl Config {\n    fn load_all() {}\n}\n"),
            ("config.rs", "fn load_all() {}\n"),
            ("d.go", "package d\n\nfunc (c *Config) Load_all() {}\n"),
        ],
        &[
            "b.rs:2 defines load_all (method)",
            "config.rs:1 defines load_all (function)",
            "d.go:3 defines Load_all (method)",
            "a.rs:2 defines load_all (method)",
            "b.rs:1-3 defines Config (implementation)",
        ],
    );
}

#[test]
fn types_come_before_fields_and_code_before_tests() {
    let files = [
        ("src/a.rs", "struct Holder {\n    retry_limit: usize,\n}\n"),
        (
            "src/b.rs",
            "fn retry_limit() {}\n\nmod tests {\n    fn retry_limit() {}\n}\n",
        ),
        ("tests/c.rs", "fn retry_limit() {}\n"),
        ("src/d.rs", "const RETRY_LIMIT: usize = 1;\n"),
    ];
    let expected = [
        "src/b.rs:1 defines retry_limit (function)",
        "src/b.rs:4 defines retry_limit (function)",
        "tests/c.rs:1 defines retry_limit (function)",
        "src/d.rs:1 defines RETRY_LIMIT (value)",
        "src/a.rs:2 defines retry_limit (value)",
    ];
    check("retry_limit", &[], &files, &expected);
    let mut asked = expected.to_vec();
    asked.push("src/b.rs:3-5 defines tests (module)");
    check("tests of retry_limit", &[], &files, &asked);
    let scores = indexed(&Tree::new(&files), "retry_limit", &["src/d.rs"]);
    let place = shown(&scores).iter().position(|line| line == expected[3]);
    assert_eq!(place, Some(1), "what is in focus moves up: {scores:?}");
}

#[test]
fn words_add_up_and_have_forms() {
    check(
        "how are retries of requests limited",
        &[],
        &[
            ("a.rs", "fn retry_request() {}\n"),
            ("b.rs", "fn request() {}\n"),
            ("c.rs", "fn limit_of_something_else_entirely() {}\n"),
            ("d.rs", "fn unrelated() {}\n"),
            ("e.rs", "fn limit_request_retries() {}\n"),
        ],
        &[
            "e.rs:1 defines limit_request_retries (function)",
            "a.rs:1 defines retry_request (function)",
            "b.rs:1 defines request (function)",
        ],
    );
}

#[test]
fn files_beside_the_index_are_seen_as_they_are() {
    let old = Tree::new(&[
        ("a.rs", "fn find_lamp() {}\n"),
        ("b.rs", "fn other() {}\n"),
        ("gone.rs", "fn find_lamp() {}\n"),
    ]);
    let new = Tree::new(&[
        ("a.rs", "\n\nfn was_renamed() {}\n"),
        ("b.rs", "// moved\n\nfn find_lamp() {}\n"),
    ]);
    let mut ask = new.ask("find_lamp", &[]);
    ask.searched.beside_index = [path("a.rs"), path("b.rs"), path("gone.rs")].into();
    let scope = CancellationToken::new().scope();
    let found = look(&ask, Some(&Known::of(&old)), &scope, Deadline::never()).unwrap();
    let expected = Hit {
        path: path("b.rs"),
        lines: Lines::one(3),
        score: found[0].score,
        why: "defines find_lamp (function)".to_owned(),
        depth: Depth::Body,
    };
    assert_eq!(found, [expected]);
}

#[test]
fn nothing_to_look_for_and_a_cancelled_scope_are_said() {
    let tree = Tree::new(&[("a.rs", "fn a_name() {}\n")]);
    let token = CancellationToken::new();
    let known = Known::of(&tree);
    let ask = |query: &str| {
        look(
            &tree.ask(query, &[]),
            Some(&known),
            &token.scope(),
            Deadline::never(),
        )
    };
    let nothing = Err(StrategyError::NotApplicable(
        "there is no name to look for".to_owned(),
    ));
    assert_eq!(ask("where is it"), nothing);
    assert_eq!(ask("no_such_name"), Ok(Vec::new()));
    let scope = token.scope();
    token.cancel(Cause::new("test", "enough"));
    for index in [Some(&known), None] {
        let found = look(&tree.ask("a_name", &[]), index, &scope, Deadline::never());
        assert_eq!(found, Err(StrategyError::Cancelled));
    }
}

#[test]
fn no_more_than_wanted_is_found() {
    let text: String = (0..500)
        .map(|number| format!("fn find_lamp_{number}() {{}}\n"))
        .collect();
    let tree = Tree::new(&[("a.rs", &text)]);
    let mut ask = tree.ask("find_lamp", &[]);
    ask.most_hits = 7;
    let scope = CancellationToken::new().scope();
    let found = look(&ask, Some(&Known::of(&tree)), &scope, Deadline::never()).unwrap();
    assert_eq!(found.len(), 7);
}
