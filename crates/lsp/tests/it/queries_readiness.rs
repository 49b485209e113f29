//! Whether a server is ready, told by what it says and by the time that passes.

use std::time::{Duration, Instant};

use lsp::{Expectation, Readiness, ReadyState, ServerHealth};
use serde_json::{Value, json};

/// What happens, at a time in milliseconds after the start.
#[derive(Debug)]
enum Event {
    Begin(u64, i64, &'static str),
    Report(u64, i64, Value),
    End(u64, i64),
    Status(u64, Value),
    /// Indexing this, or ready.
    Is(u64, Option<&'static str>),
}

fn check(expectation: Expectation, history: &[Event]) {
    let start = Instant::now();
    let at = |milliseconds: &u64| start + Duration::from_millis(*milliseconds);
    let mut readiness = Readiness::new(expectation, start);
    let progress = |token: &i64, value: Value| json!({ "token": token, "value": value });
    for (step, event) in history.iter().enumerate() {
        match event {
            Event::Begin(time, token, title) => {
                readiness.progress(
                    &progress(token, json!({ "kind": "begin", "title": title })),
                    at(time),
                );
            }
            Event::Report(time, token, value) => {
                readiness.progress(&progress(token, value.clone()), at(time))
            }
            Event::End(time, token) => {
                readiness.progress(&progress(token, json!({ "kind": "end" })), at(time))
            }
            Event::Status(time, status) => readiness.server_status(status, at(time)),
            Event::Is(time, expected) => {
                let state = readiness.state(at(time));
                let title = match &state {
                    ReadyState::Ready => None,
                    ReadyState::Indexing { title, .. } => Some(title.as_str()),
                };
                assert_eq!(title, *expected, "step {step} of {history:?}");
            }
        }
    }
}

#[test]
fn the_rules() {
    use Event::{Begin, End, Is, Report, Status};
    use Expectation::{Nothing, Work};
    // Nobody knows the server: it is ready at once, and stays so.
    check(Nothing, &[Is(0, None), Is(10_000, None)]);
    // It is known to report its work: it has three seconds to begin.
    check(
        Work,
        &[
            Is(0, Some("starting")),
            Is(2_999, Some("starting")),
            Is(3_000, None),
        ],
    );
    check(
        Work,
        &[
            Begin(100, 1, "index"),
            Is(100, Some("index")),
            Is(60_000, Some("index")),
            End(60_000, 1),
            Is(60_499, Some("index")),
            Is(60_500, None),
        ],
    );
    // A burst counts as one.
    check(
        Nothing,
        &[
            Begin(10, 1, "fetch"),
            End(20, 1),
            Is(20, Some("fetch")),
            Begin(400, 2, "load"),
            Is(519, Some("load")),
            Is(600, Some("load")),
            End(700, 2),
            Begin(800, 3, "index"),
            Is(1_300, Some("index")),
            End(1_400, 3),
            Is(1_899, Some("index")),
            Is(1_900, None),
        ],
    );
    // Several at once: the first that began is shown, the last that ends decides.
    check(
        Nothing,
        &[
            Begin(10, 1, "one"),
            Begin(20, 2, "two"),
            Is(30, Some("one")),
            End(40, 1),
            Is(50, Some("two")),
            Is(5_000, Some("two")),
            End(5_000, 2),
            Is(5_500, None),
        ],
    );
    // Once it was ready, short work does not make it flap, and long work counts.
    check(
        Work,
        &[
            Begin(10, 1, "index"),
            End(20, 1),
            Is(520, None),
            Begin(10_000, 2, "check"),
            Is(10_000, None),
            Is(10_499, None),
            End(10_499, 2),
            Is(10_499, None),
            Begin(20_000, 3, "index again"),
            Is(20_499, None),
            Is(20_500, Some("index again")),
            End(30_000, 3),
            Is(30_499, Some("index again")),
            Is(30_500, None),
        ],
    );
    // Work that the server forgot does not count for ever.
    check(
        Nothing,
        &[
            Begin(10, 1, "forgotten"),
            Is(600_009, Some("forgotten")),
            Is(600_010, None),
            Report(600_010, 1, json!({ "kind": "report" })),
            Is(1_200_009, Some("forgotten")),
            Is(1_200_010, None),
        ],
    );
    // An end without a beginning is nothing.
    check(Nothing, &[End(10, 1), Is(10, None)]);
    // The status decides alone once there is one.
    check(
        Work,
        &[
            Is(0, Some("starting")),
            Status(10, json!({ "quiescent": false, "health": "ok" })),
            Is(10_000, Some("loading the workspace")),
            Begin(10_000, 1, "indexing"),
            Is(10_000, Some("indexing")),
            Status(11_000, json!({ "quiescent": true, "health": "ok" })),
            Is(11_000, None),
            Begin(12_000, 2, "check"),
            Is(20_000, None),
        ],
    );
}

#[test]
fn progress_is_shown() {
    let start = Instant::now();
    let mut readiness = Readiness::new(Expectation::Nothing, start);
    let token = "rustAnalyzer/Indexing";
    let values = [
        (
            json!({ "kind": "begin", "title": "Indexing", "percentage": 0 }),
            None,
            Some(0),
        ),
        (
            json!({ "kind": "report", "message": "1/3", "percentage": 33.4 }),
            Some("1/3"),
            Some(33),
        ),
        (
            json!({ "kind": "report", "percentage": 1e9 }),
            Some("1/3"),
            Some(100),
        ),
        (
            json!({ "kind": "report", "message": "3/3" }),
            Some("3/3"),
            Some(100),
        ),
        // Somebody else's progress, and nonsense.
        (json!([1, 2]), Some("3/3"), Some(100)),
        (json!({ "kind": "begin" }), Some("3/3"), Some(100)),
    ];
    for (value, message, percentage) in values {
        readiness.progress(&json!({ "token": token, "value": value }), start);
        let expected = ReadyState::Indexing {
            title: "Indexing".into(),
            message: message.map(str::to_owned),
            percentage,
        };
        assert_eq!(readiness.state(start), expected, "{value}");
    }
    assert_eq!(readiness.health(), None);
    let status = json!({ "quiescent": true, "health": "warning", "message": "no Cargo.toml" });
    readiness.server_status(&status, start);
    assert_eq!(
        readiness.health(),
        Some((ServerHealth::Warning, Some("no Cargo.toml")))
    );
}

#[test]
fn the_next_look_is_when_time_alone_changes_the_state() {
    let start = Instant::now();
    let later = |milliseconds| start + Duration::from_millis(milliseconds);
    let mut readiness = Readiness::new(Expectation::Work, start);
    let mut now = start;
    let mut looks = Vec::new();
    while let Some(next) = readiness.next_look(now) {
        now = next;
        looks.push((next - start, readiness.state(next) == ReadyState::Ready));
    }
    assert_eq!(looks, [(Duration::from_secs(3), true)]);
    let value = json!({ "token": 1, "value": { "kind": "begin", "title": "t" } });
    readiness.progress(&value, later(5_000));
    let value = json!({ "token": 1, "value": { "kind": "end" } });
    readiness.progress(&value, later(6_000));
    assert_eq!(readiness.next_look(later(6_000)), Some(later(6_500)));
    assert_eq!(readiness.next_look(later(6_500)), None);
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let start = Instant::now();
    let mut readiness = Readiness::new(Expectation::Nothing, start);
    for token in 0..10_000u64 {
        let begin = json!({ "token": token, "value": { "kind": "begin", "title": token.to_string() } });
        readiness.progress(&begin, start + Duration::from_micros(token));
    }
    // The oldest of the 256 that are left.
    let state = readiness.state(start + Duration::from_millis(10));
    assert!(
        matches!(&state, ReadyState::Indexing { title, .. } if title == "9744"),
        "{state:?}"
    );
}
