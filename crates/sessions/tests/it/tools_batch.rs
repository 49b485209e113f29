//! Several calls at once: what each sees is what it would have seen one after the other.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use protocol::ToolState;
use serde_json::{Value, json};
use sessions::TurnEvent;

use super::kit::PATIENCE;
use super::tools_kit::Bench;

#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    Write(usize, u32),
    Edit(usize, u32),
    Delete(usize),
    Move(usize, usize),
    Search(u32),
    Shell,
}

const PATHS: [&str; 3] = ["a", "d/b", "d/c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (path, number) = (0..PATHS.len(), 0..4_u32);
    let step = prop_oneof![
        4 => path.clone().prop_map(Step::Read),
        4 => (path.clone(), number.clone()).prop_map(|(path, number)| Step::Write(path, number)),
        2 => (path.clone(), number.clone()).prop_map(|(path, number)| Step::Edit(path, number)),
        1 => path.clone().prop_map(Step::Delete),
        1 => (path.clone(), path).prop_map(|(from, to)| Step::Move(from, to)),
        2 => number.prop_map(Step::Search),
        1 => proptest::strategy::Just(Step::Shell),
    ];
    vec(step, 1..12)
}

fn call(step: &Step) -> (&'static str, Value) {
    match step {
        Step::Read(path) => ("read", json!({"path": PATHS[*path]})),
        Step::Write(path, number) => (
            "write",
            json!({"path": PATHS[*path], "text": format!("n{number}")}),
        ),
        Step::Edit(path, number) => (
            "edit",
            json!({"path": PATHS[*path], "find": "n", "replace": format!("n{number}")}),
        ),
        Step::Delete(path) => ("delete", json!({"path": PATHS[*path]})),
        Step::Move(from, to) => ("move", json!({"from": PATHS[*from], "to": PATHS[*to]})),
        Step::Search(number) => ("search", json!({"pattern": format!("n{number}"), "path": "d"})),
        Step::Shell => ("shell", json!({"line": "say x"})),
    }
}

/// What a call would come to if all ran one after the other: whether it works, and for those that look, what they see.
fn plainly(step: &Step, files: &mut BTreeMap<&'static str, String>) -> (bool, Option<String>) {
    match step {
        Step::Read(path) => match files.get(PATHS[*path]) {
            Some(text) => (true, Some(text.clone())),
            None => (false, None),
        },
        Step::Write(path, number) => {
            files.insert(PATHS[*path], format!("n{number}"));
            (true, None)
        }
        Step::Edit(path, number) => match files.get_mut(PATHS[*path]) {
            Some(text) if text.matches('n').count() == 1 => {
                *text = text.replace('n', &format!("n{number}"));
                (true, None)
            }
            _ => (false, None),
        },
        Step::Delete(path) => (files.remove(PATHS[*path]).is_some(), None),
        Step::Move(from, to) => {
            if from == to || files.contains_key(PATHS[*to]) {
                return (false, None);
            }
            match files.remove(PATHS[*from]) {
                Some(text) => {
                    files.insert(PATHS[*to], text);
                    (true, None)
                }
                None => (false, None),
            }
        }
        Step::Search(number) => {
            let wanted = format!("n{number}");
            let mut found: String = files
                .iter()
                .filter(|(path, text)| path.starts_with("d/") && text.contains(&wanted))
                .map(|(path, text)| format!("{path}:1:{text}\n"))
                .collect();
            if found.is_empty() {
                found = "[nothing in `d` matches]".to_owned();
            }
            (true, Some(found))
        }
        Step::Shell => (true, Some("x\n[exit 0]".to_owned())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_sees_what_it_would_see_one_after_the_other() {
    let bench = Bench::with(&[("d/stays", "")], &[]).await;
    let mut runner = TestRunner::deterministic();
    let mut files = BTreeMap::new();
    for round in 0..40 {
        let steps = steps().new_tree(&mut runner).unwrap().current();
        let answers = bench.call_all(steps.iter().map(call).collect()).await;
        assert_eq!(answers.len(), steps.len());
        for (step, answer) in steps.iter().zip(&answers) {
            let (works, seen) = plainly(step, &mut files);
            assert_eq!(
                answer.state == ToolState::Done,
                works,
                "round {round}: {step:?} of {steps:?}: {answer:?}"
            );
            if let Some(seen) = seen {
                assert_eq!(answer.text, seen, "round {round}: {step:?} of {steps:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_run_together_and_a_command_runs_alone() {
    let bench = Bench::with(&[], &[]).await;
    // Each of the first two ends only when both run.
    let meet = || ("language", json!({"verb": "meet", "path": "README.md"}));
    let read = ("read", json!({"path": "README.md"}));
    let calls = vec![
        meet(),
        meet(),
        ("shell", json!({"line": "say x"})),
        read,
        ("read", json!({})),
    ];
    let answers = tokio::time::timeout(PATIENCE, bench.call_all(calls))
        .await
        .unwrap();
    let texts: Vec<&str> = answers
        .iter()
        .take(4)
        .map(|answer| answer.text.as_str())
        .collect();
    assert_eq!(texts, ["\"met\"", "\"met\"", "x\n[exit 0]", "hello\n"]);
    assert_eq!(answers[4].state, ToolState::Failed);
    let mut order = Vec::new();
    for event in bench.events().await {
        match event {
            TurnEvent::ToolStarted { item, .. } => order.push(('+', item)),
            TurnEvent::ToolEnded { item, .. } => order.push(('-', item)),
            _ => {}
        }
    }
    let at = |event| order.iter().position(|other| *other == event).unwrap();
    // The command has the time between for itself; what cannot run at all waits for nobody but a command.
    assert!(at(('-', 0)).max(at(('-', 1))) < at(('+', 2)), "{order:?}");
    assert!(at(('-', 2)) < at(('+', 3)).min(at(('-', 4))), "{order:?}");
}
