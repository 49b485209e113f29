//! From a question to an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use context::{
    Answer, ContextError, ContextSettings, Depth, Fragment, Hit, LeftOut, Lines, ScorePart, Strategy,
    StrategyError, StrategyName, StrategyOutcome, StrategyReport, StrategySettings,
};

use crate::pipeline_kit::{Bench, Tree, answer, finds, hit, lines, path, scripted};

/// A text whose lines are `line 1` and so on.
fn numbered(lines: u32) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

const CONFIG: &str = "use std::fs;

/// Where the settings are.
pub struct Config {
    pub path: String,
}

impl Config {
    /// Reads it.
    pub fn parse(text: &str) -> Config {
        let path = text.trim().to_owned();
        Config { path }
    }
}

/// A long one.
pub fn long(one: u32, other: u32) -> u32 {
LONG    one + other
}
";

fn config() -> String {
    let long: String = (0..150)
        .map(|line| format!("    let value_{line} = one * {line} + other;\n"))
        .collect();
    CONFIG.replace("LONG", &long)
}

fn reports(answer: &Answer) -> Vec<(&str, &StrategyOutcome)> {
    let reports = answer.strategies.iter();
    reports
        .map(|report| (report.strategy.as_str(), &report.outcome))
        .collect()
}

fn shown(answer: &Answer) -> Vec<(&str, String, Depth)> {
    let fragments = answer.fragments.iter();
    fragments
        .map(|own| (own.path.as_str(), own.lines.to_string(), own.depth))
        .collect()
}

async fn ask(strategies: &[Arc<dyn Strategy>], tree: &Arc<Tree>, budget: usize) -> Answer {
    let settings = ContextSettings::default();
    answer(&Bench::new(4), strategies, settings, tree, |request| {
        request.budget_tokens = budget;
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn an_answer_is_what_it_says() {
    let tree = Tree::of(&[("a.txt", &numbered(40)), ("b/c.txt", "one\ntwo\nthree\n")]);
    let strategies = [
        finds("first", vec![hit("a.txt", 20, 9.0), hit("b/c.txt", 2, 1.0)]),
        finds("second", vec![hit("b/c.txt", 3, 1.0)]),
    ];
    let settings = ContextSettings {
        strategies: BTreeMap::from([(
            "second".to_owned(),
            StrategySettings {
                weight_percent: 50,
                ..StrategySettings::default()
            },
        )]),
        ..ContextSettings::default()
    };
    let bench = Bench::new(4);
    let found = answer(&bench, &strategies, settings, &tree, |_| {})
        .await
        .unwrap();
    let part = |strategy: &str, rank, adds, why: &str| ScorePart {
        strategy: StrategyName::new(strategy),
        rank,
        adds,
        why: why.to_owned(),
    };
    let numbers: Vec<String> = (14..=34).map(|line| format!("line {line}")).collect();
    let numbers = numbers.join("\n");
    let expected = Answer {
        fragments: vec![
            Fragment {
                path: path("b/c.txt"),
                lines: lines(1, 3),
                depth: Depth::Body,
                symbol: None,
                text: "one\ntwo\nthree".to_owned(),
                tokens: 15,
                score: 1.0 / 12.0 + 0.5 / 11.0,
                parts: vec![
                    part("first", 2, 1.0 / 12.0, "line 2"),
                    part("second", 1, 0.5 / 11.0, "line 3"),
                ],
            },
            Fragment {
                path: path("a.txt"),
                lines: lines(14, 34),
                depth: Depth::Body,
                symbol: None,
                text: numbers.clone(),
                tokens: 92,
                score: 1.0 / 11.0,
                parts: vec![part("first", 1, 1.0 / 11.0, "line 20")],
            },
        ],
        text: format!("## b/c.txt:1-3\none\ntwo\nthree\n\n## a.txt:14-34\n{numbers}\n"),
        tokens: 107,
        budget_tokens: 1000,
        strategies: vec![
            StrategyReport {
                strategy: StrategyName::new("first"),
                outcome: StrategyOutcome::Ran { hits: 2 },
                took: Duration::ZERO,
            },
            StrategyReport {
                strategy: StrategyName::new("second"),
                outcome: StrategyOutcome::Ran { hits: 1 },
                took: Duration::ZERO,
            },
        ],
        left_out: Vec::new(),
        left_out_total: 0,
        took: Duration::ZERO,
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn definitions_are_shown_as_a_whole_as_signature_or_by_name() {
    let tree = Tree::of(&[("config.rs", &config())]);
    let depth = |line, depth| Hit {
        depth,
        ..hit("config.rs", line, 1.0)
    };
    let cases = [
        // A line of a small type brings the whole type.
        (
            hit("config.rs", 11, 1.0),
            ("8-14", Depth::Body),
            "## config.rs:8-14 (implementation Config)\nimpl Config {\n    /// Reads it.\n",
        ),
        (
            hit("config.rs", 5, 1.0),
            ("3-6", Depth::Body),
            "## config.rs:3-6 (type Config)\n/// Where the settings are.\n",
        ),
        // A long one is shown from the part on that was found.
        (
            hit("config.rs", 160, 1.0),
            ("157-169", Depth::Body),
            "## config.rs:157-169 (function long)\n    let value_139",
        ),
        (
            hit("config.rs", 17, 1.0),
            ("16-45", Depth::Body),
            "## config.rs:16-45 (function long)\n/// A long one.\n",
        ),
        (
            depth(17, Depth::Signature),
            ("16-169", Depth::Signature),
            "## config.rs:16-169 (function long)\npub fn long(one: u32, other: u32) -> u32 {\n",
        ),
        (
            depth(17, Depth::Name),
            ("16-169", Depth::Name),
            "## config.rs:16-169\nfunction long\n",
        ),
        // What is in no definition is shown with the lines around it.
        (
            hit("config.rs", 1, 1.0),
            ("1", Depth::Body),
            "## config.rs:1\nuse std::fs;\n",
        ),
    ];
    for (hit, (lines, depth), text) in cases {
        let found = ask(&[finds("one", vec![hit.clone()])], &tree, 1000).await;
        assert_eq!(shown(&found), [("config.rs", lines.to_owned(), depth)], "{hit:?}");
        assert!(found.text.starts_with(text), "{text:?} {:?}", found.text);
    }
}

#[tokio::test]
async fn what_does_not_fit_is_shown_less_fully_and_then_left_out() {
    let tree = Tree::of(&[("config.rs", &config())]);
    let strategies = [finds("one", vec![hit("config.rs", 17, 1.0)])];
    for (budget, depth) in [
        (5000, Some(Depth::Body)),
        (500, Some(Depth::Body)),
        (60, Some(Depth::Signature)),
        (15, Some(Depth::Name)),
        (8, None),
        (1, None),
    ] {
        let found = ask(&strategies, &tree, budget).await;
        let shown = found.fragments.first().map(|fragment| fragment.depth);
        assert_eq!((shown, found.tokens <= budget), (depth, true), "{budget}");
        assert_eq!(found.left_out_total, usize::from(depth.is_none()), "{budget}");
    }
    let found = ask(&strategies, &tree, 8).await;
    let [left_out] = &found.left_out[..] else {
        panic!("one is left out: {found:?}");
    };
    let expected = LeftOut {
        path: path("config.rs"),
        lines: lines(16, 115),
        score: 1.0 / 11.0,
        tokens: left_out.tokens,
    };
    assert_eq!(left_out, &expected);
    assert!(left_out.tokens > 1000);
    assert_eq!((found.text.as_str(), found.tokens), ("", 0));
}

#[tokio::test]
async fn a_hit_on_a_file_adds_to_its_units_or_is_one() {
    let tree = Tree::of(&[("config.rs", &config()), ("notes.txt", &numbered(30))]);
    let whole = |path| hit(path, 0, 1.0);
    let strategies = [
        finds("lines", vec![hit("config.rs", 5, 2.0), hit("config.rs", 17, 1.0)]),
        finds("files", vec![whole("config.rs"), whole("notes.txt")]),
    ];
    let found = ask(&strategies, &tree, 5000).await;
    let parts: Vec<_> = found
        .fragments
        .iter()
        .map(|own| {
            let parts = own.parts.iter().map(|part| (part.strategy.as_str(), part.rank));
            (own.path.as_str(), own.lines.first(), parts.collect::<Vec<_>>())
        })
        .collect();
    let expected = [
        ("config.rs", 3, vec![("lines", 1), ("files", 1)]),
        ("config.rs", 16, vec![("lines", 2), ("files", 1)]),
        ("notes.txt", 1, vec![("files", 2)]),
    ];
    assert_eq!(parts, expected);
    // On its own it is shown by what it defines.
    let found = ask(&[finds("files", vec![whole("config.rs")])], &tree, 5000).await;
    assert_eq!(
        found.text,
        "## config.rs:1-169\npub struct Config {\nimpl Config {\n    pub fn parse(text: &str) -> Config {\npub fn \
         long(one: u32, other: u32) -> u32 {\n"
    );
    let found = ask(&[finds("files", vec![whole("config.rs")])], &tree, 18).await;
    assert_eq!(found.text, "## config.rs:1-169\nConfig, long\n");
}

#[tokio::test]
async fn what_cannot_be_shown_is_passed_over() {
    let huge = "x".repeat(1024 * 1024 + 1);
    let one_line = "let a = 1; ".repeat(50_000);
    let tree = Tree::of(&[
        ("empty", ""),
        ("blank", "\n\n  \n\n"),
        ("binary", "a\0b"),
        ("huge", &huge),
        ("one-line.js", &one_line),
        ("short", "one\r\ntwo"),
    ]);
    let far = Hit {
        lines: Lines::new(2, u32::MAX),
        ..hit("short", 1, 1.0)
    };
    let hits = vec![
        hit("empty", 1, 9.0),
        hit("empty", 0, 9.0),
        hit("blank", 2, 8.0),
        hit("binary", 1, 7.0),
        hit("huge", 1, 6.0),
        hit("missing", 1, 5.0),
        hit("short", 3, 4.0),
        hit("short", u32::MAX, 4.0),
        far,
        hit("one-line.js", 1, 0.5),
    ];
    let found = ask(&[finds("one", hits)], &tree, 1000).await;
    let expected = [
        ("short", "1-2".to_owned(), Depth::Body),
        ("one-line.js", "1".to_owned(), Depth::Body),
    ];
    assert_eq!(shown(&found), expected);
    assert_eq!(found.fragments[0].text, "one\ntwo");
    assert!(found.fragments[1].text.len() < 1100 && found.fragments[1].text.ends_with('…'));
    assert_eq!((found.left_out_total, found.fragments[0].parts[0].rank), (0, 1));
}

#[tokio::test]
async fn strategies_are_chosen_by_name() {
    let tree = Tree::of(&[("a.txt", "one\n")]);
    let strategies = ["one", "two", "off"].map(|name| finds(name, vec![hit("a.txt", 1, 1.0)]));
    let settings = ContextSettings {
        strategies: BTreeMap::from([(
            "off".to_owned(),
            StrategySettings {
                enabled: false,
                ..StrategySettings::default()
            },
        )]),
        ..ContextSettings::default()
    };
    let named = |names: &[&str]| {
        names
            .iter()
            .map(|name| StrategyName::new(name))
            .collect::<Vec<_>>()
    };
    type Names = &'static [&'static str];
    let cases: [(Names, Names, [bool; 3]); 6] = [
        (&[], &[], [true, true, false]),
        (&["off"], &[], [false, false, true]),
        (&["two", "off"], &["two"], [false, false, true]),
        (&[], &["one"], [false, true, false]),
        (&["one"], &["one"], [false, false, false]),
        (&[], &["one", "two", "off"], [false, false, false]),
    ];
    let bench = Bench::new(4);
    for (only, without, expected) in cases {
        let found = answer(&bench, &strategies, settings.clone(), &tree, |request| {
            (request.only, request.without) = (named(only), named(without));
        })
        .await
        .unwrap();
        let asked: Vec<bool> = reports(&found)
            .iter()
            .map(|(_, outcome)| **outcome != StrategyOutcome::LeftOut)
            .collect();
        assert_eq!(asked, expected, "{only:?} {without:?}");
        assert_eq!(found.fragments.len(), usize::from(expected.contains(&true)));
    }
    for (only, without) in [(&["one", "three"][..], &[][..]), (&[], &["three"])] {
        let refused = answer(&bench, &strategies, settings.clone(), &tree, |request| {
            (request.only, request.without) = (named(only), named(without));
        })
        .await;
        let Err(ContextError::NoSuchStrategy { name, known }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((name.as_str(), known.as_str()), ("three", "one, two, off"));
    }
}

#[tokio::test]
async fn without_a_budget_nobody_is_asked() {
    let tree = Tree::of(&[("a.txt", "one\n")]);
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = {
        let asked = Arc::clone(&asked);
        scripted("one", move |_, _, _| {
            asked.fetch_add(1, Ordering::SeqCst); // tidy: a test counts calls
            std::future::ready(Ok(vec![hit("a.txt", 1, 1.0)]))
        })
    };
    let found = ask(&[Arc::clone(&counts)], &tree, 0).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(reports(&found), [("one", &StrategyOutcome::LeftOut)]);
    assert_eq!(
        (found.text.as_str(), found.tokens, found.fragments.len()),
        ("", 0, 0)
    );
    ask(&[counts], &tree, 100).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_fails_is_named_and_the_others_answer() {
    let tree = Tree::of(&[("a.txt", "one\n")]);
    let bench = Bench::new(4);
    let strategies = [
        scripted("ill", |_, _, _| {
            std::future::ready(Err(StrategyError::Failed("no luck".to_owned())))
        }),
        finds("well", vec![hit("a.txt", 1, 1.0)]),
    ];
    let ill = StrategyOutcome::Failed {
        why: "no luck".to_owned(),
    };
    let open = StrategyOutcome::Open {
        retry_after: Some(Duration::from_secs(30)),
    };
    for expected in [&ill, &ill, &ill, &open, &open] {
        let settings = ContextSettings::default();
        let found = answer(&bench, &strategies, settings, &tree, |_| {})
            .await
            .unwrap();
        assert_eq!(
            reports(&found),
            [("ill", expected), ("well", &StrategyOutcome::Ran { hits: 1 })]
        );
        assert_eq!(found.text, "## a.txt:1\none\n");
    }
}
