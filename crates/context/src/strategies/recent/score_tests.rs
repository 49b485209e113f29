//! Which files fit a question.

use super::super::log::{Whole, read};
use super::*;

/// A history of commits: subjects and files.
fn history(commits: &[(&str, &[&str])]) -> History {
    let text: String = commits
        .iter()
        .map(|(subject, files)| {
            let files: String = files.iter().map(|file| format!("{file}\0")).collect();
            format!("\u{1}{subject}\0\n{files}")
        })
        .collect();
    read(text.as_bytes(), Whole::Yes)
}

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn plan(title: &str, changed: &[&str]) -> OpenPlan {
    OpenPlan {
        plan: "p1".to_owned(),
        title: title.to_owned(),
        changed: changed.iter().map(|text| path(text)).collect(),
    }
}

/// The results, as `path: why`.
fn found(history: &History, plans: &[OpenPlan], query: &str, focus: &[&str]) -> Vec<String> {
    let focus: Vec<TreePath> = focus.iter().map(|text| path(text)).collect();
    let asked = Asked::new(&Query::parse(query), &focus);
    score(history, plans, &asked)
        .into_iter()
        .map(|scored| format!("{}: {}", scored.path, scored.why))
        .collect()
}

#[test]
fn commits_that_say_the_words_name_their_files() {
    let history = history(&[
        ("docs: words", &["README.md"]),
        ("parser: reads dates", &["src/parse.rs", "tests/dates.rs"]),
        ("reader: faster", &["src/read.rs"]),
        ("parser: dates with zones", &["src/parse.rs"]),
        (
            "all: rename",
            &["README.md", "src/parse.rs", "src/read.rs", "src/main.rs"],
        ),
    ]);
    let expected = [
        "src/parse.rs: commit `parser: dates with zones`, and 1 more",
        "tests/dates.rs: commit `parser: reads dates`",
    ];
    assert_eq!(found(&history, &[], "parsing of dates", &[]), expected);
    assert_eq!(found(&history, &[], "sockets", &[]), [] as [&str; 0]);
}

#[test]
fn what_changes_together_with_the_focus_is_found() {
    let history = history(&[
        ("one", &["a.rs", "b.rs"]),
        ("two", &["a.rs", "b.rs"]),
        ("three", &["a.rs", "c.rs"]),
        ("four", &["d.rs"]),
    ]);
    let expected = [
        "b.rs: changed together with the focus in 2 of 3 commits",
        "c.rs: changed together with the focus in 1 of 3 commits",
    ];
    assert_eq!(found(&history, &[], "", &["a.rs"]), expected);
    assert_eq!(found(&history, &[], "", &["d.rs"]), [] as [&str; 0]);
}

#[test]
fn plans_count_more_if_they_fit() {
    let plans = [
        plan("Sockets", &["net/a.rs", "net/b.rs"]),
        plan("Dates", &["dates.rs", "net/a.rs"]),
    ];
    let none = History::default();
    let expected = [
        "dates.rs: plan p1 is changing it: Dates",
        "net/a.rs: plan p1 is changing it: Dates",
    ];
    assert_eq!(found(&none, &plans, "dates", &[]), expected);
    let in_focus = ["net/b.rs: plan p1 is changing it: Sockets"];
    assert_eq!(found(&none, &plans, "", &["net/b.rs"]), in_focus);
}

#[test]
fn that_a_plan_changes_a_file_says_nothing_about_another_question() {
    let plans = [plan("Sockets", &["net/a.rs"])];
    let history = history(&[("one", &["net/a.rs"])]);
    assert_eq!(found(&history, &plans, "asdfqwer zxcv", &[]), [] as [&str; 0]);
    let lately = ["net/a.rs: plan p1 is changing it: Sockets"];
    assert_eq!(found(&history, &plans, "what was changed lately", &[]), lately);
}

#[test]
fn what_is_merely_new_is_found_only_if_it_is_asked_for() {
    let history = history(&[("one", &["b.rs"]), ("two", &["a.rs"]), ("three", &["b.rs"])]);
    assert_eq!(found(&history, &[], "how do sockets work", &[]), [] as [&str; 0]);
    let expected = [
        "b.rs: changed in 2 of the last 3 commits",
        "a.rs: changed in 1 of the last 3 commits",
    ];
    assert_eq!(found(&history, &[], "what was changed lately", &[]), expected);
}

#[test]
fn of_two_that_fit_alike_the_newer_one_is_better() {
    let history = history(&[("dates", &["z.rs"]), ("other", &["y.rs"]), ("dates", &["a.rs"])]);
    let expected = ["z.rs: commit `dates`", "a.rs: commit `dates`"];
    assert_eq!(found(&history, &[], "dates", &[]), expected);
}
