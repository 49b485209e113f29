//! What readers of turns and of whole sessions get, through the service.

use std::time::Duration;

use eventlog::Sequence;
use kernel::CancellationToken;
use protocol::{ToolState, TurnId, TurnState, TurnTranscript};
use serde_json::{Value, json};
use sessions::{AgentEnd, ExportFormat, FollowFrom, FollowItem, TurnEvent, TurnFollow, apply, apply_stored};

use crate::kit::{Kit, Led, PATIENCE};

/// Reads on until the end; says what the reader has, how it was told to start over, and how the turn ended.
async fn to_the_end(mut follow: TurnFollow, mut has: TurnTranscript) -> (TurnTranscript, u64, TurnState) {
    let mut resyncs = 0;
    loop {
        let item = tokio::time::timeout(PATIENCE, follow.next()).await.unwrap();
        match item.unwrap().unwrap() {
            FollowItem::Events(batch) => batch
                .events()
                .iter()
                .for_each(|event| apply_stored(&mut has, event)),
            FollowItem::Resync { snapshot, .. } => {
                has = *snapshot;
                resyncs += 1;
            }
            FollowItem::End { state, .. } => return (has, resyncs, state),
        }
    }
}

async fn folded(kit: &Kit, turn: TurnId) -> TurnTranscript {
    let mut folded = TurnTranscript::default();
    let events: Vec<TurnEvent> = kit.events(turn).await;
    events.iter().for_each(|event| apply(&mut folded, event));
    folded
}

/// Says and does a little of everything.
async fn work(led: &Led) {
    let sink = &led.turn.sink;
    sink.reasoning("What is there?\nLet me see.").await.unwrap();
    let tool = sink.tool("shell", "call-1").await.unwrap();
    tool.arguments("{\"line\":").await.unwrap();
    tool.arguments("\"ls\"}").await.unwrap();
    tool.started("ls", json!({"line": "ls"})).await.unwrap();
    tool.output("README.md\n```\n").await.unwrap();
    tool.ended(ToolState::Done, "exit 0", None).await.unwrap();
    for number in 0..100 {
        sink.text(&format!("{number} ")).await.unwrap();
    }
}

#[tokio::test]
async fn readers_of_a_turn_have_what_the_log_has_before_and_after_it_is_folded() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let token = CancellationToken::new();
    let first = kit.send(session, "one").await.turn.id;
    let second = kit.send(session, "two").await.turn.id;
    let scope = token.scope();
    let follow = |turn, from| kit.sessions.follow_turn(turn, from, &scope);
    // The second one waits, and is followed all the same.
    let readers = [
        follow(first, FollowFrom::Start).await.unwrap(),
        follow(second, FollowFrom::Start).await.unwrap(),
    ]
    .map(|follow| tokio::spawn(to_the_end(follow, TurnTranscript::default())));
    for _ in 0..2 {
        let led = kit.puppet.next().await;
        work(&led).await;
        led.end(AgentEnd::Done);
    }
    let mut has = Vec::new();
    for (reader, turn) in readers.into_iter().zip([first, second]) {
        let (read, resyncs, state) = reader.await.unwrap();
        assert_eq!((resyncs, state), (0, TurnState::Done));
        assert_eq!(read, folded(&kit, turn).await);
        assert_eq!(kit.sessions.transcript(turn).await.unwrap().1, read);
        has.push(read);
    }

    let folded = kit.sessions.compact(Duration::ZERO).await.unwrap();
    assert_eq!(folded.turns, 2);
    for (turn, has) in [first, second].into_iter().zip(has) {
        let events = kit.events(turn).await;
        assert!(
            matches!(
                events[..],
                [TurnEvent::State {
                    state: TurnState::Done,
                    ..
                }]
            ),
            "{events:?}"
        );
        let after = FollowFrom::After(Sequence::from_u64(7).into());
        let resumed = to_the_end(follow(turn, after).await.unwrap(), TurnTranscript::default()).await;
        assert_eq!(resumed, (has, 1, TurnState::Done));
    }
    assert_eq!(
        kit.sessions.compact(Duration::ZERO).await.unwrap(),
        Default::default()
    );
}

async fn exported(kit: &Kit, session: protocol::SessionId, format: ExportFormat) -> String {
    let mut export = kit.sessions.export(session, format).await.unwrap();
    let mut text = String::new();
    while let Some(piece) = export.next_piece().await.unwrap() {
        text += &piece;
    }
    text
}

#[tokio::test]
async fn a_session_is_written_down_for_programs_and_for_people() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let first = kit.send(session, "What is there?\n").await.turn.id;
    let led = kit.puppet.next().await;
    led.turn.sink.reasoning("Hm.\nI see.").await.unwrap();
    let tool = led.turn.sink.tool("shell", "").await.unwrap();
    tool.started("ls", json!({"line": "ls"})).await.unwrap();
    tool.output("README.md\n```\n").await.unwrap();
    tool.ended(ToolState::Done, "exit 0", None).await.unwrap();
    led.turn.sink.text("A **readme**.").await.unwrap();
    led.turn.sink.trouble("slow", "It took long.").await.unwrap();
    led.end(AgentEnd::failed("tired", "It was too much"));
    kit.end(first).await;
    kit.send(session, "Go on").await;
    let _running = kit.puppet.next().await;
    kit.send(session, "And then").await;

    let markdown = exported(&kit, session, ExportFormat::Markdown).await;
    let expected = format!(
        "# What is there?\n\n`{session}` in `{}`, agent `puppet`, 3 prompts\n\
         \n## 1. Prompt\n\nWhat is there?\n\n### puppet\n\n> Hm.\n> I see.\n\
         \n````\nshell: done\nls\nREADME.md\n```\n````\n\nA **readme**.\n\nTrouble (`slow`): It took long.\n\
         \n*failed*: It was too much (`tired`)\n\
         \n## 2. Prompt\n\nGo on\n\n### puppet\n\n*running*\n\
         \n## 3. Prompt\n\nAnd then\n\n### puppet\n\n*queued*\n",
        kit.workspace.display()
    );
    assert_eq!(markdown, expected);

    let written: Value = serde_json::from_str(&exported(&kit, session, ExportFormat::Json).await).unwrap();
    assert_eq!(written["session"]["id"], session.to_string());
    let turns = written["turns"].as_array().unwrap();
    let shown: Vec<_> = turns
        .iter()
        .map(|turn| json!([turn["number"], turn["state"], turn["prompt"]]))
        .collect();
    let expected = [
        json!([1, "failed", "What is there?\n"]),
        json!([2, "running", "Go on"]),
        json!([3, "queued", "And then"]),
    ];
    assert_eq!(shown, expected);
    let items = &turns[0]["items"];
    assert_eq!(items[0], json!({"type": "reasoning", "text": "Hm.\nI see."}));
    assert_eq!(items[1]["output"], "README.md\n```\n");
    assert_eq!(
        turns[0]["error"],
        json!({"code": "tired", "text": "It was too much"})
    );
    // A session without a turn is a whole document too.
    let empty = kit.session().await;
    let written: Value = serde_json::from_str(&exported(&kit, empty, ExportFormat::Json).await).unwrap();
    assert_eq!(written["turns"], json!([]));
}
