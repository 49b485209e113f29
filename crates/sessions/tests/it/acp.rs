//! The agent `acp`, with a real process in a real sandbox: what it says, asks and does.

use std::time::Duration;

use kernel::SystemClock;
use protocol::{
    AgentChoice, Attachment, PermissionAnswer, PermissionRule, RulePermission, SessionState, TurnState, Usage,
};
use sessions::{NewSession, StoredAttachment, TurnEvent};

use crate::acp_kit::{AcpKit, error_of, own, says, story};
use crate::kit::prompt;

#[tokio::test]
async fn what_it_says_thinks_and_calls_becomes_the_turn() {
    let kit = AcpKit::new("").await;
    let (turn, story) = kit
        .once("say hello\nsay , you\nthink hm\nunknown\nplan first|second\ntool t1\nsay done\nopen-tool t2")
        .await;
    assert_eq!(error_of(&turn), (TurnState::Done, "", ""));
    assert_eq!(
        story,
        [
            "text: hello, you",
            "reasoning: hm\nThe plan:\n[ ] first\n[ ] second\n",
            "2 shell called t1",
            r#"2 started counts {"to":2}"#,
            r#"2 output "one\nchanged /w/a\n""#,
            r#"2 Done "one\nchanged /w/a\n""#,
            "text: done",
            "4 search called t2",
            "4 started looks around {}",
            r#"4 Failed "the agent said no more of it""#,
        ]
    );
    let expected = Usage {
        input_tokens: 3,
        output_tokens: 2,
        requests: 1,
        cost_micros: 0,
    };
    assert_eq!(turn.record.usage, expected);
}

#[tokio::test]
async fn files_are_read_and_written_in_the_plan_and_nowhere_else() {
    let kit = AcpKit::new("").await;
    let outside = kit.state.parent().unwrap().join("outside");
    let session = kit.kit.session().await;
    let text = format!(
        "read README.md\nwrite src/new.rs fn new() {{}}\nread src/new.rs\nread missing\nread {0}\nwrite {0} gone\nwrite ../up gone\nwrite .git/config gone\nread /etc/passwd",
        outside.display()
    );
    let (turn, story) = kit.run(session, &text).await;
    assert_eq!(error_of(&turn), (TurnState::Done, "", ""));
    let said = story.iter().filter_map(|line| line.strip_prefix("text: "));
    let said = said.collect::<String>();
    let workspace = kit.kit.workspace.display();
    let refused = format!(
        "error: \"`{}` is not in the workspace, which is {workspace}\"",
        outside.display()
    );
    assert_eq!(
        said,
        format!(
            r#""hello\n"written"fn new() {{}}\n"error: "there is nothing at `missing`"{refused}{refused}error: "`../up` cannot be used: it has `.` or `..` in it"error: "`.git/config` cannot be used: what git keeps for itself is not part of a workspace"error: "`/etc/passwd` is not in the workspace, which is {workspace}""#
        )
    );
    assert!(story.contains(&"plan: 1 src/new.rs".to_owned()), "{story:?}");
    assert_eq!(
        kit.file(session, "src/new.rs").await.as_deref(),
        Some("fn new() {}\n")
    );
    assert!(
        !kit.kit.workspace.join("src/new.rs").exists(),
        "it is not applied yet"
    );
    assert!(!outside.exists());
}

#[tokio::test]
async fn what_it_writes_by_itself_is_recorded_as_its_turn_and_stays_in_the_sandbox() {
    let kit = AcpKit::new("").await;
    let session = kit.kit.session().await;
    let text = "directly notes.txt by hand\nwrite through.txt by us";
    let (turn, story) = kit.run(session, text).await;
    assert_eq!(error_of(&turn), (TurnState::Done, "", ""));
    assert_eq!(kit.file(session, "notes.txt").await.as_deref(), Some("by hand\n"));
    assert_eq!(kit.file(session, "through.txt").await.as_deref(), Some("by us\n"));
    assert_eq!(story.last().map(String::as_str), Some("plan: 2 notes.txt"));
    assert!(!kit.kit.workspace.join("notes.txt").exists());
    let plan = turn.record.plan.unwrap();
    let changesets = kit.kit.plans.changesets(plan).await.unwrap();
    let by: Vec<_> = changesets
        .iter()
        .map(|changeset| &*changeset.record.tool)
        .collect();
    assert_eq!(by, ["scripted", "scripted"]);
    // Nothing runs in it any more, so it can be applied.
    let record = kit.kit.plans.get(plan).await.unwrap().record;
    assert_eq!(
        (record.running.len(), record.state),
        (0, protocol::PlanState::Sealed)
    );
}

#[tokio::test]
async fn the_user_is_asked_with_the_options_of_the_agent() {
    let cases = [
        (
            PermissionAnswer::Allow,
            r#"{"optionId":"own-allow_once","outcome":"selected"}"#,
        ),
        (
            PermissionAnswer::AllowAlways,
            r#"{"optionId":"own-allow_always","outcome":"selected"}"#,
        ),
        (
            PermissionAnswer::Deny,
            r#"{"optionId":"own-reject_once","outcome":"selected"}"#,
        ),
    ];
    let kit = AcpKit::new("").await;
    for (answer, outcome) in cases {
        let session = kit.kit.session().await;
        let turn = kit.kit.send(session, "ask rm -r target").await.turn.id;
        let asked = kit
            .until(turn, |event| matches!(event, TurnEvent::PermissionAsked { .. }))
            .await;
        let TurnEvent::PermissionAsked { permission, .. } = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(kit.kit.get(session).await.record.state(), SessionState::Asking);
        let answered = kit.kit.sessions.answer(session, permission, answer, "bob".into());
        answered.await.unwrap();
        let (ended, story) = kit.ended(turn).await;
        assert_eq!(error_of(&ended), (TurnState::Done, "", ""));
        assert_eq!(
            story,
            [
                "0 shell called asked".to_owned(),
                r#"asked Some(0) shell "rm -r target" own-allow_once=Allow=name of allow_once own-allow_always=AllowAlways=name of allow_always own-reject_once=Deny=name of reject_once"#.to_owned(),
                format!("answered {answer:?} bob"),
                format!("text: {outcome}"),
                r#"0 started runs something {"command":"rm -r target"}"#.to_owned(),
                r#"0 Failed "the agent said no more of it""#.to_owned(),
            ]
        );
    }
}

#[tokio::test]
async fn rules_decide_before_the_user_is_asked() {
    let kit = AcpKit::new("").await;
    let created = kit.kit.sessions.create(NewSession {
        directory: kit.kit.workspace.join("src"),
        title: String::new(),
        agent: AgentChoice {
            name: "scripted".to_owned(),
            ..AgentChoice::default()
        },
        rules: vec![PermissionRule {
            tool: "*".to_owned(),
            pattern: None,
            permission: RulePermission::Deny,
        }],
        plan: None,
        by: "ann".into(),
    });
    let session = created.await.unwrap().id;
    let (turn, story) = kit
        .run(session, "ask rm -r target\nwrite new.rs no\nrun ls\nread main.rs")
        .await;
    assert_eq!(error_of(&turn), (TurnState::Done, "", ""));
    let said = story.iter().filter(|line| line.starts_with("text")).cloned();
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            r#"text: {"optionId":"own-reject_once","outcome":"selected"}error: "`write` is not allowed here"error: "`shell` is not allowed here"error: "`read` is not allowed here""#
        ]
    );
    assert_eq!(kit.file(session, "src/new.rs").await, None);
    assert_eq!(*kit.shell.orders.lock().unwrap(), []);
}

#[tokio::test]
async fn terminals_are_jobs_and_end_with_the_turn() {
    let kit = AcpKit::new("").await;
    let (turn, story) = kit.once("run cargo test\nrun missing\nbegin hang on").await;
    assert_eq!(error_of(&turn), (TurnState::Done, "", ""));
    let gone = |number: u32| format!(r#"error: "there is no terminal `terminal-{number}`""#);
    assert_eq!(
        story,
        [
            "0 shell called terminal".to_owned(),
            "0 started cargo test {}".to_owned(),
            r#"0 output "cargo test says hello\n""#.to_owned(),
            r#"0 Done "cargo test says hello\n""#.to_owned(),
            format!(
                r#"text: {{"exitCode":0,"signal":null}} "cargo test says hello\n" false {{}} {}{{"exitCode":127,"signal":null}} "there is no such command" false {{}} {}"terminal-3""#,
                gone(1),
                gone(2)
            ),
        ]
    );
    let orders = kit.shell.orders.lock().unwrap().clone();
    let environment = vec![("A".to_owned(), "1".to_owned())];
    assert_eq!(
        orders,
        [
            ("cargo test".to_owned(), String::new(), environment.clone()),
            ("missing".to_owned(), String::new(), environment),
            ("hang on".to_owned(), String::new(), Vec::new()),
        ]
    );
    assert_eq!(*kit.shell.ended.lock().unwrap(), ["cargo test", "hang on"]);
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_next_turn() {
    let told = r#"This conversation began before you were started. What was said in it so far:\n\nThe user said:\nsay one\n\nThe answer was:\none\n\nNow the user says:\n\nrecall"#;
    let cases = [
        (
            "resumes",
            r#"text: known: "say one\n", told: "recall""#.to_owned(),
        ),
        ("loads", r#"text: known: "say one\n", told: "recall""#.to_owned()),
        ("forgets", format!(r#"text: known: "", told: "{told}""#)),
    ];
    for (agent, expected) in cases {
        let kit = AcpKit::new(agent).await;
        let session = kit.kit.session().await;
        kit.run(session, "say one").await;
        let (_, story) = kit.run(session, "recall").await;
        assert_eq!(story, [expected], "{agent}");
        // What was noted for it goes with the session.
        let notes = eventlog::StreamId::new(&format!("acp-session/{session}")).unwrap();
        assert!(kit.kit.log.head(&notes).await.unwrap().is_some());
        kit.kit.sessions.remove(session, "ann".into()).await.unwrap();
        assert!(kit.kit.log.head(&notes).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_agent_that_missed_a_turn_is_told_of_it() {
    let kit = AcpKit::new("resumes").await;
    let session = kit.kit.session().await;
    kit.run(session, "say one").await;
    let puppet = AgentChoice {
        name: "puppet".to_owned(),
        ..AgentChoice::default()
    };
    let mut new = prompt("two?");
    new.agent = Some(puppet);
    let turn = kit.kit.sessions.start_turn(session, new).await.unwrap().turn.id;
    let led = kit.kit.puppet.next().await;
    led.turn.sink.text("2").await.unwrap();
    led.end(sessions::AgentEnd::Done);
    kit.kit.end(turn).await;
    let (_, story) = kit.run(session, "recall").await;
    assert_eq!(
        story,
        [
            r#"text: known: "", told: "This conversation began before you were started. What was said in it so far:\n\nThe user said:\nsay one\n\nThe answer was:\none\n\nThe user said:\ntwo?\n\nThe answer was:\n2\n\nNow the user says:\n\nrecall""#
        ]
    );
}

#[tokio::test]
async fn what_comes_with_a_prompt_is_handed_over() {
    let kit = AcpKit::new("").await;
    let session = kit.kit.session().await;
    let put = kit.kit.log.put_blob(&b"notes"[..]).await.unwrap();
    let mut new = prompt("attached");
    new.prompt.attachments = vec![StoredAttachment {
        about: Attachment {
            name: "notes.md".to_owned(),
            media_type: "text/markdown".to_owned(),
            size_bytes: 5,
        },
        content: put.0,
    }];
    let turn = kit.kit.sessions.start_turn(session, new).await.unwrap().turn.id;
    let (_, story) = kit.ended(turn).await;
    assert_eq!(
        story,
        [
            r#"text: {"resource":{"mimeType":"text/markdown","text":"notes","uri":"attachment:///notes.md"},"type":"resource"}"#
        ]
    );
}

#[tokio::test]
async fn a_model_is_chosen_if_there_is_a_choice() {
    let check = async |agent: &str, model: &str, expected: (TurnState, &str, &str), said: &[&str]| {
        let kit = AcpKit::new(agent).await;
        let session = kit.kit.session().await;
        let mut new = prompt("model");
        new.agent = Some(AgentChoice {
            name: "scripted".to_owned(),
            model: Some(model.to_owned()),
            script: None,
        });
        let turn = kit.kit.sessions.start_turn(session, new).await.unwrap().turn.id;
        let (turn, story) = kit.ended(turn).await;
        assert_eq!((error_of(&turn), story), (expected, own(said)));
    };
    check("chooses", "small", (TurnState::Done, "", ""), &["text: small"]).await;
    let unknown = "the agent has no model `huge`: there is no such model";
    check("chooses", "huge", (TurnState::Failed, "acp_model", unknown), &[]).await;
    let no_choice = "the agent offers no choice of models";
    check("", "small", (TurnState::Failed, "acp_model", no_choice), &[]).await;
}

#[tokio::test]
async fn two_sessions_have_a_process_each_and_a_fast_agent_loses_no_word() {
    let kit = AcpKit::new("").await;
    let (one, two) = (kit.kit.session().await, kit.kit.session().await);
    let first = kit.kit.send(one, "wait").await.turn.id;
    kit.until(first, says("waiting")).await;
    let second = kit.kit.send(two, "flood 5000").await.turn.id;
    let ended = kit.kit.end(second).await;
    assert_eq!(ended.record.state, TurnState::Done);
    let expected: String = (0..5000).map(|number| format!("{number} ")).collect();
    let story = story(&kit.kit.events(second).await);
    assert_eq!(story, [format!("text: {expected}")]);
    let stop = kit
        .kit
        .sessions
        .cancel_turn(one, None, "ann".into(), String::new());
    stop.await.unwrap();
    let (ended, _) = kit.ended(first).await;
    assert_eq!(ended.record.state, TurnState::Cancelled);
}

#[tokio::test]
async fn closing_stops_what_runs() {
    let kit = AcpKit::new("").await;
    let session = kit.kit.session().await;
    let turn = kit.kit.send(session, "wait").await.turn.id;
    kit.until(turn, says("waiting")).await;
    kit.kit.sessions.close();
    let deadline = kernel::Deadline::after(&SystemClock::shared(), Duration::from_secs(30));
    kit.kit.sessions.drain(&deadline).await;
    let (ended, _) = kit.ended(turn).await;
    assert_eq!(ended.record.state, TurnState::Interrupted);
}
