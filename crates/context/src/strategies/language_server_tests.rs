//! The questions to language servers, and how their answers are used.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use kernel::{CancellationToken, Clock, SystemClock};

use super::*;
use crate::strategy::SearchTree;
use crate::view::{FileText, NotText, Since};

#[derive(Debug, Default)]
struct Files {
    texts: BTreeMap<TreePath, &'static str>,
    changed: Vec<TreePath>,
}

impl View for Files {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        let text = self.texts.get(path).ok_or(NotText::Missing)?;
        Ok((*text).into())
    }

    fn walk(&self, _: &Scope, _: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        Ok(())
    }

    fn since(&self) -> Since {
        Since {
            taken: None,
            changed: self.changed.clone(),
        }
    }
}

/// Returns canned answers, and records the questions.
#[derive(Debug)]
struct Servers {
    asked: Mutex<Vec<String>>,
    answers: BTreeMap<&'static str, Result<Vec<CodeLocation>, PortError>>,
}

impl Servers {
    async fn answer(&self, asked: String) -> Result<Vec<CodeLocation>, PortError> {
        let answer = self.answers.iter().find(|(begin, _)| asked.starts_with(**begin));
        let answer = answer.map(|(_, answer)| answer.clone());
        self.asked.lock().unwrap().push(asked);
        match answer {
            Some(Err(PortError::Failed(why))) if why == "hang" => std::future::pending().await,
            Some(answer) => answer,
            None => Err(PortError::Unavailable("nobody".to_owned())),
        }
    }
}

#[async_trait]
impl LanguageServers for Servers {
    async fn ask(
        &self,
        _: &std::path::Path,
        question: &CodeQuestion,
        _: &Scope,
        _: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError> {
        self.answer(match question {
            CodeQuestion::Symbols { name, near } => format!("symbols {name} near {}", near.len()),
            CodeQuestion::References {
                file, line, column, ..
            } => format!("references {file} ({line}, {column})"),
            CodeQuestion::Diagnostics { file } => format!("diagnostics {file}"),
        })
        .await
    }
}

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn place(file: &str, first: u32, last: u32, what: &str) -> CodeLocation {
    CodeLocation {
        path: path(file),
        lines: Lines::new(first, last).unwrap(),
        what: what.to_owned(),
    }
}

const A: &str =
    "/// Über alles.\npub fn parse_dates(text: &str) -> u32 {\n    text.len() as u32\n}\n\nfn other() {}\n";
const B: &str = "use a;\nfn main() {\n    parse_dates(\"\");\n}\n";

struct Case {
    query: &'static str,
    focus: &'static [&'static str],
    changed: &'static [&'static str],
    answers: Vec<(&'static str, Result<Vec<CodeLocation>, PortError>)>,
    time: Duration,
}

/// The hits, as `score path:lines why`, and the questions.
async fn found(case: Case) -> (Result<Vec<String>, StrategyError>, Vec<String>) {
    let changed: Vec<TreePath> = case.changed.iter().map(|text| path(text)).collect();
    let files = Files {
        texts: BTreeMap::from([(path("a.rs"), A), (path("b.rs"), B)]),
        changed: changed.clone(),
    };
    let servers = Arc::new(Servers {
        asked: Mutex::default(),
        answers: case.answers.into_iter().collect(),
    });
    let ask = Ask {
        query: Query::parse(case.query),
        focus: case.focus.iter().map(|text| path(text)).collect(),
        searched: SearchTree {
            root: "/tree".into(),
            view: Arc::new(files),
            index: None,
            beside_index: changed.into(),
        },
        most_hits: 20,
    };
    let clock: Arc<dyn Clock> = SystemClock::shared();
    let strategy = LanguageServer::new(Arc::clone(&servers) as Arc<dyn LanguageServers>);
    let scope = CancellationToken::new().scope();
    let hits = strategy
        .find(Arc::new(ask), scope, Deadline::after(&clock, case.time))
        .await;
    let shown = hits.map(|hits| {
        let show = |hit: &Hit| format!("{} {}:{} {}", hit.score, hit.path, hit.lines.unwrap(), hit.why);
        hits.iter().map(show).collect()
    });
    let asked = servers.asked.lock().unwrap().clone();
    (shown, asked)
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn names_are_asked_for_and_places_are_ranked() {
    let answers = vec![(
        "symbols",
        Ok(vec![
            place("b.rs", 2, 4, "function parse_dates_fast"),
            place("a.rs", 2, 4, "function parse_dates"),
            place("gone.rs", 1, 1, "function parse_dates"),
            place("b.rs", 90, 91, "function parse_dates"),
            place("a.rs", 6, 40, "function parse_dates"),
        ]),
    )];
    let (hits, asked) = found(Case {
        query: "where is `a::parse_dates` called",
        focus: &[],
        changed: &[],
        answers,
        time: LONG,
    })
    .await;
    assert_eq!(asked, ["symbols parse_dates near 0"]);
    let expected = [
        "3 a.rs:2-4 defines function parse_dates",
        "3 a.rs:6 defines function parse_dates",
        "2 b.rs:2-4 defines function parse_dates_fast",
    ];
    assert_eq!(hits.unwrap(), expected);
}

#[tokio::test]
async fn the_focus_is_asked_what_is_wrong_and_who_uses_it() {
    let answers = vec![
        ("diagnostics a.rs", Ok(vec![place("a.rs", 3, 3, "error: no")])),
        (
            "references a.rs (2, 8)",
            Ok(vec![place("b.rs", 3, 3, ""), place("b.rs", 3, 3, "")]),
        ),
    ];
    let (hits, asked) = found(Case {
        query: "dates",
        focus: &["a.rs"],
        changed: &[],
        answers,
        time: LONG,
    })
    .await;
    assert_eq!(asked, ["diagnostics a.rs", "references a.rs (2, 8)"]);
    let expected = [
        "4 a.rs:3 diagnostic: error: no",
        "1 b.rs:3 uses parse_dates of a.rs",
    ];
    assert_eq!(hits.unwrap(), expected);
}

#[tokio::test]
async fn what_looks_different_in_the_plan_is_left_out() {
    let answers = vec![
        (
            "symbols",
            Ok(vec![
                place("a.rs", 2, 2, "parse_dates"),
                place("b.rs", 2, 2, "parse_dates"),
            ]),
        ),
        ("diagnostics", Ok(vec![place("b.rs", 1, 1, "bad")])),
    ];
    let (hits, asked) = found(Case {
        query: "parse_dates",
        focus: &["a.rs", "b.rs"],
        changed: &["a.rs"],
        answers,
        time: LONG,
    })
    .await;
    assert_eq!(asked, ["symbols parse_dates near 2", "diagnostics b.rs"]);
    assert_eq!(
        hits.unwrap(),
        ["4 b.rs:1 diagnostic: bad", "3 b.rs:2 defines parse_dates"]
    );
}

#[tokio::test]
async fn nobody_is_no_failure_and_a_failure_costs_only_itself() {
    let failed = || Err(PortError::Failed("it crashed".to_owned()));
    let good = || Ok(vec![place("b.rs", 1, 1, "bad")]);
    let hang = || Err(PortError::Failed("hang".to_owned()));
    let cases = [
        (
            vec![],
            LONG,
            Err(StrategyError::NotApplicable("nobody".to_owned())),
        ),
        (
            vec![("symbols", failed())],
            LONG,
            Err(StrategyError::Failed("it crashed".to_owned())),
        ),
        (vec![("symbols", failed()), ("diagnostics", good())], LONG, Ok(1)),
        (vec![("symbols", Ok(vec![]))], LONG, Ok(0)),
        (
            vec![("symbols", hang()), ("diagnostics", good())],
            Duration::from_secs(1),
            Ok(1),
        ),
    ];
    for (answers, time, expected) in cases {
        let said = format!("{answers:?}");
        let case = Case {
            query: "parse_dates",
            focus: &["b.rs"],
            changed: &[],
            answers,
            time,
        };
        let (hits, _) = found(case).await;
        assert_eq!(hits.map(|hits| hits.len()), expected, "{said}");
    }
    let (hits, asked) = found(Case {
        query: "how does it work",
        focus: &[],
        changed: &[],
        answers: vec![],
        time: LONG,
    })
    .await;
    assert!(matches!(hits, Err(StrategyError::NotApplicable(_))), "{hits:?}");
    assert_eq!(asked, [] as [&str; 0]);
}
