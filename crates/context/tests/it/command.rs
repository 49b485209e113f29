//! Strategies that are commands, good ones and others.

use std::fs;
use std::time::Duration;

use context::{Hit, StrategyError};
use serde_json::{Value, json};

use super::sources_kit::{Kit, PATIENCE};

const TREE: &str = "printf 'one\\ntwo\\n' > a.rs; mkdir d; echo three > d/b.rs";

/// Hits as `score path:lines why`.
fn shown(hits: &[Hit]) -> Vec<String> {
    let lines = |hit: &Hit| {
        hit.lines
            .map_or_else(|| "all".to_owned(), |lines| lines.to_string())
    };
    hits.iter()
        .map(|hit| format!("{} {}:{} {}", hit.score, hit.path, lines(hit), hit.why))
        .collect()
}

fn why(asked: Result<Vec<Hit>, StrategyError>) -> String {
    match asked {
        Err(StrategyError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_the_question_and_its_places_are_taken() {
    let answer = json!({"hits": [
        {"path": "d/b.rs", "score": 1, "why": "says three"},
        {"path": "gone.rs", "score": 9},
        {"path": "a.rs", "first_line": 1, "last_line": 2, "score": 2},
    ]});
    let line = format!("cat > ../question; pwd > ../place; echo '{answer}'");
    let kit = Kit::new(TREE, &[("mine", &line)]).await;
    let hits = kit.ask("mine", "where is ParseConfig", &["a.rs"]).await.unwrap();
    assert_eq!(shown(&hits), ["2 a.rs:1-2 ", "1 d/b.rs:all says three"]);
    let outside = kit.root.parent().unwrap();
    let mut question: Value =
        serde_json::from_str(&fs::read_to_string(outside.join("question")).unwrap()).unwrap();
    let left = question["deadline_ms"].take().as_u64().unwrap();
    assert!(left > 0 && left <= PATIENCE.as_millis() as u64, "{left}");
    let expected = json!({
        "version": 1, "query": "where is ParseConfig", "terms": ["ParseConfig"], "focus": ["a.rs"], "changed": [],
        "root": kit.root, "deadline_ms": null, "most_hits": 20,
    });
    assert_eq!(question, expected);
    let place = fs::read_to_string(outside.join("place")).unwrap();
    assert_eq!(place.trim_end(), kit.root.to_str().unwrap());

    let hits = kit.ask_in("mine", "x", &[], &["a.rs"], PATIENCE).await.unwrap();
    assert_eq!(shown(&hits), ["2 a.rs:all ", "1 d/b.rs:all says three"]);
    let question = fs::read_to_string(outside.join("question")).unwrap();
    let question: Value = serde_json::from_str(&question).unwrap();
    assert_eq!(question["changed"], json!(["a.rs"]));
    assert_eq!(kit.processes.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_wrong_fails_and_says_why() {
    let fine = "{\"hits\": [{\"path\": \"a.rs\", \"score\": 1}]}";
    let deaf = format!("exec < /dev/null; echo '{fine}'");
    let leaves = format!("(trap \"\" TERM; while :; do sleep 1; done) > /dev/null 2>&1 & echo '{fine}'");
    let kit = Kit::new(
        TREE,
        &[
            ("rubbish", "echo hello; echo 'I am lost' >&2"),
            ("silent", "true"),
            ("fails", "echo '{\"hits\": []}'; echo bad luck >&2; exit 3"),
            ("dies", "kill -9 $$"),
            ("too-much", "yes"),
            (
                "loud",
                "yes >&2 & yes | head -c 300000 >&2; kill $!; echo rubbish",
            ),
            (
                "outside",
                "echo '{\"hits\": [{\"path\": \"../a\", \"score\": 1}]}'",
            ),
            ("deaf", &deaf),
            ("leaves", &leaves),
        ],
    )
    .await;
    let cases = [
        (
            "rubbish",
            "it did not answer as it should: expected value at line 1 column 1; it said: I am lost",
        ),
        ("silent", "it did not answer as it should: EOF"),
        ("fails", "it ended with exit code 3; it said: bad luck"),
        ("dies", "it ended with signal 9"),
        ("too-much", "it wrote more than 1048576 bytes"),
        ("loud", "it did not answer as it should"),
        ("outside", "hit 0 is wrong: `../a` is not a path"),
    ];
    for (name, expected) in cases {
        let error = why(kit.ask(name, "x", &[]).await);
        assert!(error.starts_with(expected), "{name}: {error}");
        assert!(error.len() < 1_000, "{name}: {}", error.len());
        assert_eq!(kit.processes.count(), 0, "{name}");
    }
    // What the question says does not fit into a pipe, so that somebody has to read it or go away.
    let long = "ParseConfig ".repeat(20_000);
    for name in ["deaf", "leaves"] {
        let hits = kit.ask(name, &long, &[]).await.unwrap();
        assert_eq!(shown(&hits), ["1 a.rs:all "], "{name}");
        assert_eq!(kit.processes.count(), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_there_fails() {
    let kit = Kit::new(TREE, &[]).await;
    let missing = Kit::with_command(TREE, "missing", &["no-such-program"]).await;
    let error = why(missing.ask("missing", "x", &[]).await);
    assert!(
        error.starts_with("`no-such-program` cannot be executed: "),
        "{error}"
    );
    assert_eq!((kit.processes.count(), missing.processes.count()), (0, 0));
}

/// A tree of processes that ends by nobody's wish but ours.
const STUBBORN: &str =
    "trap '' TERM; (trap '' TERM; echo $$ > ../begun; while :; do sleep 1; done) & while :; do sleep 1; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_command_is_ended_with_everything_that_it_started() {
    let kit = Kit::new(TREE, &[("slow", STUBBORN)]).await;
    let time = Duration::from_millis(1_500);
    let ended = kit.ask_in("slow", "x", &[], &[], time).await;
    assert_eq!(ended, Err(StrategyError::Cancelled));
    assert_eq!(kit.processes.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_question_ends_its_command() {
    let kit = Kit::new(TREE, &[("slow", STUBBORN)]).await;
    let begun = kit.root.parent().unwrap().join("begun");
    let asking = kit.ask("slow", "x", &[]);
    let cancelling = async {
        kit.until("it has begun", || begun.exists()).await;
        assert_eq!(kit.processes.count(), 1);
        kit.token.cancel(kernel::Cause::new("test", "enough"));
    };
    let (ended, ()) = tokio::join!(asking, cancelling);
    assert_eq!(ended, Err(StrategyError::Cancelled));
    assert_eq!(kit.processes.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_dropped_ends_its_command() {
    let kit = Kit::new(TREE, &[("slow", STUBBORN)]).await;
    let begun = kit.root.parent().unwrap().join("begun");
    {
        let asking = kit.ask("slow", "x", &[]);
        tokio::select! {
            ended = asking => panic!("{ended:?}"),
            () = kit.until("it has begun", || begun.exists()) => {}
        }
    }
    kit.until("nothing is left", || kit.processes.count() == 0).await;
}
