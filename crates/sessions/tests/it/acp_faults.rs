//! The agent `acp`, when its program misbehaves or the user stops it.

use std::time::Duration;

use protocol::{AgentChoice, TurnState};
use sessions::{NewSession, Readiness, SessionError};

use crate::acp_kit::{AcpKit, own, says};
use crate::kit::PATIENCE;

#[tokio::test]
async fn an_agent_that_ends_in_the_middle_interrupts_its_turn_and_what_it_said_is_kept() {
    let cases = [
        (
            "say half\ndirectly a.txt kept\ndie",
            "the agent ended in the middle of its work (signal 6)",
        ),
        (
            "say half\ndirectly a.txt kept\nexit 4",
            "the agent ended in the middle of its work (exit code 4): I am leaving",
        ),
    ];
    let kit = AcpKit::new("").await;
    for (text, expected) in cases {
        let session = kit.kit.session().await;
        let (turn, story) = kit.run(session, text).await;
        let error = turn.record.error.unwrap();
        assert_eq!(
            (turn.record.state, error.code.as_str(), error.text.as_str()),
            (TurnState::Interrupted, "acp_ended", expected)
        );
        assert_eq!(story, ["text: halfwritten directly", "plan: 1 a.txt"]);
        assert_eq!(kit.file(session, "a.txt").await.as_deref(), Some("kept\n"));
        // The session is free, and the next process comes up after its pause.
        let (turn, story) = kit.run(session, "say again").await;
        assert_eq!(
            (turn.record.state, story.last().map(String::as_str)),
            (TurnState::Done, Some("text: again"))
        );
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_interrupts_its_turn() {
    let kit = AcpKit::new("").await;
    let session = kit.kit.session().await;
    let turn = kit.kit.send(session, "say half\nwait").await.turn.id;
    kit.until(turn, says("waiting")).await;
    let pid = kit.processes.list()[0].pid.unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let (ended, story) = kit.ended(turn).await;
    assert_eq!(ended.record.state, TurnState::Interrupted);
    assert_eq!(story, ["text: halfwaiting"]);
}

#[tokio::test]
async fn what_is_no_agent_fails_with_a_reason() {
    let cases = [
        (
            "silent",
            "say hello",
            "acp_no_answer",
            "the agent did not answer `initialize` within 2 s (exit code 0): I have nothing to say",
        ),
        (
            "dies",
            "say hello",
            "acp_start",
            "the agent ended before it was ready (exit code 3): there is no model here",
        ),
        (
            "babbles",
            "say hello",
            "acp_protocol",
            "the agent is of no use: it does not speak the protocol; it wrote \"Welcome!\" (exit code 0)",
        ),
        (
            "newer",
            "say hello",
            "acp_protocol",
            "it speaks version 2 of the protocol, and we speak 1 (exit code 0)",
        ),
        (
            "",
            "say half\ngarbage",
            "acp_protocol",
            "the agent was stopped: it does not speak the protocol; it wrote \"}{ what is this\"",
        ),
        (
            "",
            "huge 9000000",
            "acp_protocol",
            "the agent was stopped: it sent a message of more than 8388608 bytes",
        ),
        ("", "refuse no key", "acp_error", "internal error: no key"),
        (
            "",
            "sign-in",
            "acp_auth",
            "sign in to the agent first: authentication required; a key in AGENT_KEY",
        ),
        (
            "",
            "stop max_tokens",
            "acp_max_tokens",
            "the agent has used up the tokens that it may use",
        ),
        (
            "",
            "stop refusal",
            "acp_refusal",
            "the agent does not want to go on",
        ),
        (
            "",
            "stop cancelled",
            "acp_cancelled",
            "the agent stopped, and nobody here asked it to",
        ),
    ];
    for (agent, text, code, expected) in cases {
        let kit = AcpKit::with(agent, |settings| {
            // Only one of them is waited for in vain.
            if agent == "silent" {
                settings.start_timeout = Duration::from_secs(2);
            }
        })
        .await;
        let (turn, _) = kit.once(text).await;
        let error = turn.record.error.unwrap();
        assert_eq!(
            (turn.record.state, error.code.as_str(), error.text.as_str()),
            (TurnState::Failed, code, expected)
        );
    }
}

#[tokio::test]
async fn a_long_message_that_is_not_too_long_arrives() {
    let kit = AcpKit::new("").await;
    let (turn, story) = kit.once("huge 3000000").await;
    assert_eq!(turn.record.state, TurnState::Done);
    assert_eq!(story, [format!("text: {}", "x".repeat(3_000_000))]);
}

#[tokio::test]
async fn a_stop_is_told_to_the_agent_and_one_that_does_not_listen_is_killed() {
    let cases = [
        ("wait", "waiting", vec!["text: waitingstopped"]),
        ("stubborn", "never", vec!["text: never"]),
        (
            "open-tool t\nwait",
            "waiting",
            vec![
                "0 search called t",
                "0 started looks around {}",
                "text: waitingstopped",
                "0 Cancelled \"the agent said no more of it\"",
            ],
        ),
    ];
    for (text, waits_for, expected) in cases {
        let kit = AcpKit::with("", |settings| {
            // Only one of them is waited for in vain.
            settings.cancel_grace = match text {
                "stubborn" => Duration::from_millis(100),
                _ => PATIENCE,
            };
        })
        .await;
        let session = kit.kit.session().await;
        let turn = kit.kit.send(session, text).await.turn.id;
        kit.until(turn, says(waits_for)).await;
        let stop = kit
            .kit
            .sessions
            .cancel_turn(session, None, "ann".into(), "enough".to_owned());
        stop.await.unwrap();
        let (ended, story) = kit.ended(turn).await;
        assert_eq!(
            (ended.record.state, story),
            (TurnState::Cancelled, own(&expected))
        );
    }
}

#[tokio::test]
async fn a_stop_reaches_questions_commands_and_an_agent_that_is_not_up_yet() {
    let kit = AcpKit::new("").await;
    // A question: the agent hears that the turn is stopped, not that it was denied.
    let session = kit.kit.session().await;
    let turn = kit.kit.send(session, "ask rm").await.turn.id;
    kit.until(turn, |event| event.kind() == "permission_asked").await;
    let stop = kit
        .kit
        .sessions
        .cancel_turn(session, None, "ann".into(), String::new());
    stop.await.unwrap();
    let (ended, story) = kit.ended(turn).await;
    assert_eq!(ended.record.state, TurnState::Cancelled);
    assert_eq!(
        story[2..],
        [
            "answered Deny ",
            r#"text: {"outcome":"cancelled"}"#,
            r#"0 started runs something {"command":"rm"}"#,
            r#"0 Cancelled "the agent said no more of it""#
        ]
    );
    // A command.
    let turn = kit.kit.send(session, "run hang").await.turn.id;
    kit.until(turn, |event| event.kind() == "tool_started").await;
    let stop = kit
        .kit
        .sessions
        .cancel_turn(session, None, "ann".into(), String::new());
    stop.await.unwrap();
    let (ended, _) = kit.ended(turn).await;
    assert_eq!(ended.record.state, TurnState::Cancelled);
    assert_eq!(*kit.shell.ended.lock().unwrap(), ["hang"]);
    // One that does not come up.
    let kit = AcpKit::new("silent").await;
    let session = kit.kit.session().await;
    let turn = kit.kit.send(session, "say hello").await.turn.id;
    let stop = kit
        .kit
        .sessions
        .cancel_turn(session, None, "ann".into(), String::new());
    stop.await.unwrap();
    let (ended, story) = kit.ended(turn).await;
    assert_eq!((ended.record.state, story), (TurnState::Cancelled, Vec::new()));
}

#[tokio::test]
async fn a_program_that_is_not_installed_is_said_to_be_missing() {
    let kit = AcpKit::with("", |settings| {
        settings.command = vec!["no-such-agent".to_owned()];
    })
    .await;
    let missing = "the program `no-such-agent` is not installed, or not in the PATH of the daemon";
    let agents = kit.kit.sessions.agents();
    let agent = agents.iter().find(|agent| agent.name == "scripted").unwrap();
    assert_eq!(agent.readiness, Readiness::Missing(missing.to_owned()));
    let created = kit.kit.sessions.create(NewSession {
        directory: kit.kit.workspace.clone(),
        title: String::new(),
        agent: AgentChoice {
            name: "scripted".to_owned(),
            ..AgentChoice::default()
        },
        rules: Vec::new(),
        plan: None,
        by: "ann".into(),
    });
    let refused = created.await;
    assert!(
        matches!(&refused, Err(SessionError::AgentNotReady { missing: text, .. }) if text == missing),
        "{refused:?}"
    );
}
