//! Scripts, played through the real service.

use std::time::{Duration, Instant};

use protocol::{AgentChoice, PermissionAnswer, SessionState, ToolState, TurnId, TurnState};
use sessions::agents::rehearsal::Rehearsal;
use sessions::{SessionError, TurnEvent, TurnRecord};

use crate::kit::{Kit, PATIENCE, prompt};

async fn kit() -> Kit {
    Kit::with(|agents, settings| {
        agents.insert("rehearsal".to_owned(), Rehearsal::new("rehearsal"));
        settings.default_agent = "rehearsal".to_owned();
    })
    .await
}

/// Begins a turn with a script.
async fn begin(kit: &Kit, text: &str, script: &str) -> TurnId {
    let session = kit.session().await;
    let mut new = prompt(text);
    new.agent = Some(AgentChoice {
        name: "rehearsal".to_owned(),
        script: Some(script.to_owned()),
        ..AgentChoice::default()
    });
    kit.sessions.start_turn(session, new).await.unwrap().turn.id
}

/// Plays a script to its end: how it ended, and what it said and thought, piece by piece.
async fn play(kit: &Kit, text: &str, script: &str) -> (TurnRecord, Vec<String>) {
    let turn = begin(kit, text, script).await;
    let record = kit.end(turn).await.record;
    let said = kit
        .events(turn)
        .await
        .into_iter()
        .filter_map(|event| match event {
            TurnEvent::Text { delta, .. } => Some(delta),
            TurnEvent::Reasoning { delta, .. } => Some(format!("({delta})")),
            _ => None,
        });
    (record, said.collect())
}

#[tokio::test]
async fn a_script_says_and_thinks_word_by_word() {
    let kit = kit().await;
    let script = "
steps:
  - say: You asked for {{prompt}}
  - think: {text: hm hm}
  - repeat: {times: 2, steps: [say: {text: 'a b ', every: 1ms}]}
";
    let (record, said) = play(&kit, "two words", script).await;
    assert_eq!((record.state, record.error), (TurnState::Done, None));
    let expected = [
        "You ", "asked ", "for ", "two ", "words\n", "(hm )", "(hm)", "a ", "b ", "a ", "b ",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn how_a_script_ends_is_how_its_turn_ends() {
    let kit = kit().await;
    let cases = [
        (
            "steps: [say: a, fail: 'no {{prompt}}', say: b]",
            "rehearsal_failed",
            "no more",
        ),
        (
            "steps: [say: a, repeat: {times: 4000000000, steps: []}]",
            "script_limit",
            "the script takes more than 1000000 steps",
        ),
        (
            "steps: [say: a, repeat: {times: 1000, steps: [ask: '{{prompt}}{{prompt}}', fail: x]}]",
            "rehearsal_failed",
            "x",
        ),
    ];
    for (script, code, text) in cases {
        let turn = begin(&kit, "more", script).await;
        if script.contains("ask") {
            answer(&kit, turn, PermissionAnswer::Allow).await;
        }
        let record = kit.end(turn).await.record;
        let error = record.error.unwrap();
        assert_eq!(
            (record.state, error.code.as_str()),
            (TurnState::Failed, code),
            "{script}"
        );
        assert!(error.text.contains(text), "{script}: {}", error.text);
    }
    let huge = "{{prompt}}".repeat(1000);
    let script = format!("steps: [say: a, say: '{huge}', say: b]");
    let (record, said) = play(&kit, &"x".repeat(10_000), &script).await;
    assert_eq!(record.error.unwrap().code, "script_limit");
    assert_eq!(said, ["a\n"], "what it has said stays");
}

#[tokio::test]
async fn a_prompt_with_a_wrong_script_is_not_taken() {
    let kit = kit().await;
    let session = kit.session().await;
    let mut new = prompt("p");
    new.agent = Some(AgentChoice {
        name: "rehearsal".to_owned(),
        script: Some("steps:\n  - say: a\n  - jump: b".to_owned()),
        ..AgentChoice::default()
    });
    let refused = kit.sessions.start_turn(session, new).await.unwrap_err();
    let SessionError::Invalid { what } = refused else {
        panic!("{refused}")
    };
    assert!(
        what.contains("the script is wrong in line 3: there is no step `jump`"),
        "{what}"
    );
    assert_eq!(kit.get(session).await.record.prompts, 0);
}

#[tokio::test]
async fn without_a_script_there_is_something_to_look_at_in_the_end() {
    let kit = kit().await;
    let session = kit.session().await;
    let turn = kit.send(session, "make it better").await.turn.id;
    let record = kit.end(turn).await.record;
    assert_eq!((record.state, record.error), (TurnState::Done, None));
    let events = kit.events(turn).await;
    let tools: Vec<(String, Option<ToolState>)> = events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::ToolStarted { item, title, .. } => Some((title.clone(), ended(&events, *item))),
            _ => None,
        })
        .collect();
    let done = Some(ToolState::Done);
    let titles: Vec<&str> = tools.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(tools.len(), 4, "{titles:?}");
    assert!(tools.iter().all(|(_, state)| *state == done), "{tools:?}");
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::Text { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        text.contains("no model is configured") && text.contains("You asked: make it better"),
        "{text}"
    );
    let plan = record.plan.unwrap();
    let changes = kit.plans.changes(plan, None).await.unwrap();
    let paths: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["rehearsal-note.md"]);
    let note = kit
        .plans
        .read_file(plan, Some("rehearsal-note.md".parse().unwrap()))
        .await;
    let plans::FileFound::File { content, .. } = note.unwrap() else {
        panic!("the note is a file")
    };
    let note = String::from_utf8(content).unwrap();
    assert!(
        note.contains("> make it better") && note.contains("hello"),
        "{note}"
    );
    assert!(
        !kit.workspace.join("rehearsal-note.md").exists(),
        "nothing is applied by itself"
    );
}

fn ended(events: &[TurnEvent], wanted: u64) -> Option<ToolState> {
    events.iter().find_map(|event| match event {
        TurnEvent::ToolEnded { item, state, .. } if *item == wanted => Some(*state),
        _ => None,
    })
}

#[tokio::test]
async fn tools_are_called_as_a_model_would_and_their_failures_do_not_end_the_script() {
    let kit = kit().await;
    let script = "
steps:
  - read: nowhere.md
  - write: {path: a.md, text: 'one {{prompt}}'}
  - edit: {path: a.md, find: one, replace: two}
  - read: a.md
  - say: '{{answer}}'
  - lsp: {verb: hover, at: 'src/main.rs:1:4'}
  - read: ../../etc/passwd
";
    let turn = begin(&kit, "p", script).await;
    assert_eq!(kit.end(turn).await.record.state, TurnState::Done);
    let events = kit.events(turn).await;
    let states: Vec<(String, Option<ToolState>)> = events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::ToolCall { item, tool, .. } => Some((tool.clone(), ended(&events, *item))),
            _ => None,
        })
        .collect();
    let expected = [
        ("read", ToolState::Failed),
        ("write", ToolState::Done),
        ("edit", ToolState::Done),
        ("read", ToolState::Done),
        ("language", ToolState::Done),
        ("read", ToolState::Failed),
    ];
    assert_eq!(
        states,
        expected.map(|(tool, state)| (tool.to_owned(), Some(state)))
    );
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::Text { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "two p\n");
}

/// Answers the question of a turn, as soon as it is asked.
async fn answer(kit: &Kit, turn: TurnId, answer: PermissionAnswer) {
    let session = kit.sessions.turn(turn).await.unwrap().record.session;
    let began = Instant::now();
    loop {
        let now = kit.get(session).await;
        if now.record.state() == SessionState::Asking {
            let asked = &now.record.active.unwrap().asked[0];
            kit.sessions
                .answer(session, asked.id, answer, "bob".into())
                .await
                .unwrap();
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it asks nothing: {:?}", now.record);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_question_holds_the_script_and_its_answer_is_said() {
    let kit = kit().await;
    for (given, said) in [
        (PermissionAnswer::Allow, "bob has answered: allow.\n"),
        (PermissionAnswer::AllowAlways, "bob has answered: allow always.\n"),
        (PermissionAnswer::Deny, "bob has answered: deny.\n"),
    ] {
        let turn = begin(&kit, "p", "steps: [ask: may I?, say: '{{answer}} it is']").await;
        answer(&kit, turn, given).await;
        assert_eq!(kit.end(turn).await.record.state, TurnState::Done);
        let events = kit.events(turn).await;
        let texts: String = events
            .iter()
            .filter_map(|event| match event {
                TurnEvent::Text { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        let name = said.trim_end_matches(".\n").rsplit(": ").next().unwrap();
        assert_eq!(texts, format!("{said}{name} it is\n"));
        assert!(events.iter().any(
            |event| matches!(event, TurnEvent::PermissionAsked { subject, tool, .. } if subject == "may I?" && tool == "ask")
        ));
    }
}

#[tokio::test]
async fn a_stop_ends_every_kind_of_step_at_once() {
    let kit = kit().await;
    let scripts = [
        "steps: [say: begun, sleep: 24h, say: too late]",
        "steps: [say: begun, ask: may I?, say: too late]",
        "steps: [say: begun, say: {text: 'a b c', every: 24h}, say: too late]",
        "steps: [say: begun, repeat: {times: 900000, steps: [sleep: 0ms]}, sleep: 24h, say: too late]",
    ];
    for script in scripts {
        let turn = begin(&kit, "p", script).await;
        let session = kit.sessions.turn(turn).await.unwrap().record.session;
        let began = Instant::now();
        while !kit.events(turn).await.iter().any(|event| event.kind() == "text") {
            assert!(began.elapsed() < PATIENCE, "{script}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        kit.sessions
            .cancel_turn(session, None, "ann".into(), "enough".to_owned())
            .await
            .unwrap();
        assert_eq!(kit.end(turn).await.record.state, TurnState::Cancelled, "{script}");
        assert_eq!(kit.get(session).await.record.state(), SessionState::Idle);
        let events = kit.events(turn).await;
        let is_late =
            |event: &TurnEvent| matches!(event, TurnEvent::Text { delta, .. } if delta.contains("late"));
        assert!(!events.iter().any(is_late), "{script}");
    }
}
