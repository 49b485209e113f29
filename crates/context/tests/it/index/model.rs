//! Random histories of a tree, and the index after each step.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::{Site, check, up_to_date};

#[derive(Clone, Debug)]
enum Step {
    Write(String, String),
    Remove(String),
    Rename(String, String),
    Ignore(&'static str),
    Restart,
    Rebuild,
    /// Many files at once, more than are read one by one.
    Flood(String, usize),
}

/// Few names, so that they meet often.
fn paths() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "a/x.rs",
        "a/b",
        "a/b/x.rs",
        "a/b/y.txt",
        "c",
        "c/x.rs",
        "c/z.log",
        "x.rs",
        "target/x.rs",
        "d/e/f/g.txt",
        "d/e",
        "d",
    ])
    .prop_map(str::to_owned)
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "(needle|alpha|beta|Gamma|\u{e4}\u{f6}|fn main\\(\\) \\{\\}|\n| |x){0,8}",
        1 => Just("nul \0 needle".to_owned()),
        1 => Just(String::new()),
        1 => Just("alpha ".repeat(200_000)),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let rules = prop::sample::select(vec!["", "*.log\n", "a/\n", "x.rs\n!/x.rs\n", "/d/e\n*.txt\n"]);
    prop_oneof![
        8 => (paths(), texts()).prop_map(|(path, text)| Step::Write(path, text)),
        3 => paths().prop_map(Step::Remove),
        4 => (paths(), paths()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => rules.prop_map(Step::Ignore),
        1 => Just(Step::Restart),
        1 => Just(Step::Rebuild),
        1 => (paths(), 60..140_usize).prop_map(|(path, count)| Step::Flood(path, count)),
    ]
}

/// Does a step. What cannot be done is left out: the tree is what it is.
fn act(root: &Path, step: &Step) {
    match step {
        Step::Write(path, text) => {
            let path = root.join(path);
            drop(fs::create_dir_all(path.parent().unwrap()));
            drop(fs::write(path, text));
        }
        Step::Remove(path) => {
            let path = root.join(path);
            drop(fs::remove_file(&path));
            drop(fs::remove_dir_all(&path));
        }
        Step::Rename(from, to) => drop(fs::rename(root.join(from), root.join(to))),
        Step::Ignore("") => drop(fs::remove_file(root.join(".gitignore"))),
        Step::Ignore(rules) => fs::write(root.join(".gitignore"), rules).unwrap(),
        Step::Flood(path, count) => {
            let directory = root.join(path);
            drop(fs::create_dir_all(&directory));
            for number in 0..*count {
                drop(fs::write(
                    directory.join(format!("{number}.txt")),
                    format!("needle {number}"),
                ));
            }
        }
        Step::Restart | Step::Rebuild => {}
    }
}

async fn play(history: &[Vec<Step>]) {
    let site = Site::new();
    let mut index = site.open();
    for steps in history {
        for step in steps {
            act(&site.root(), step);
            match step {
                Step::Restart => {
                    site.close(index).await;
                    index = site.open();
                }
                Step::Rebuild => index.rebuild(),
                _ => {}
            }
        }
        let snapshot = up_to_date(&index).await;
        check(
            &snapshot,
            &site.root(),
            &["needle", "alpha", "GAMMA", "\u{e4}\u{f6}", "fn main()"],
        );
    }
    site.close(index).await;
}

proptest! {
    #![proptest_config(Config { cases: 40, failure_persistence: None, ..Config::default() })]

    #[test]
    fn after_every_step_the_index_is_as_the_tree(
        history in prop::collection::vec(prop::collection::vec(steps(), 1..6), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(play(&history));
    }
}
