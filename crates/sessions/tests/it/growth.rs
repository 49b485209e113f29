//! What a session keeps has a limit, and what nobody needs any more goes.

use std::time::Duration;

use eventlog::{HeadsOrder, HeadsQuery};
use protocol::{PermissionAnswer, TurnState};
use sessions::{AgentEnd, Asker, NewTurn, Question, Started};

use crate::kit::{Kit, prompt};

/// How many idempotency keys there are.
async fn keys(kit: &Kit) -> usize {
    let query = HeadsQuery {
        kind: "turn-key".into(),
        status: None,
        order: HeadsOrder::OldestFirst,
        after: None,
        limit: 1000,
    };
    kit.log.heads(query).await.unwrap().len()
}

fn with_key(key: &str) -> NewTurn {
    NewTurn {
        idempotency_key: Some(key.to_owned()),
        ..prompt("hello")
    }
}

#[tokio::test]
async fn the_keys_of_turns_that_are_long_over_go() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let mut turns = Vec::new();
    for key in ["a", "b"] {
        let accepted = kit.sessions.start_turn(session, with_key(key)).await.unwrap();
        turns.push(accepted.turn.id);
    }
    let first = kit.puppet.next().await;
    // One runs and one waits, so both keys are needed, however long ago they were used.
    assert_eq!(kit.sessions.collect_keys(Duration::ZERO).await.unwrap(), 0);
    first.end(AgentEnd::Done);
    kit.end(turns[0]).await;
    kit.puppet.next().await.end(AgentEnd::Done);
    kit.end(turns[1]).await;
    assert_eq!(
        kit.sessions
            .collect_keys(Duration::from_secs(3600))
            .await
            .unwrap(),
        0
    );
    let again = kit.sessions.start_turn(session, with_key("a")).await.unwrap();
    assert_eq!((again.turn.id, again.started), (turns[0], Started::Before));
    assert_eq!(keys(&kit).await, 2);
    assert_eq!(kit.sessions.collect_keys(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(keys(&kit).await, 0);
}

#[tokio::test]
async fn the_keys_of_a_session_that_was_removed_go() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let accepted = kit.sessions.start_turn(session, with_key("a")).await.unwrap();
    kit.puppet.next().await.end(AgentEnd::Done);
    kit.end(accepted.turn.id).await;
    kit.sessions.remove(session, "ann".into()).await.unwrap();
    assert_eq!(keys(&kit).await, 1);
    let collected = kit.sessions.collect_keys(Duration::from_secs(3600)).await;
    assert_eq!((collected.unwrap(), keys(&kit).await), (1, 0));
}

/// Asks, and lets somebody answer.
async fn answered(kit: &Kit, session: protocol::SessionId, asker: &Asker, subject: &str) -> PermissionAnswer {
    let question = Question {
        item: None,
        tool: "shell".to_owned(),
        subject: subject.to_owned(),
        options: Vec::new(),
    };
    let asking = tokio::spawn({
        let asker = asker.clone();
        async move { asker.ask(question).await }
    });
    let open = loop {
        let active = kit.get(session).await.record.active.unwrap();
        if let Some(open) = active.asked.iter().find(|asked| asked.answer.is_none()) {
            break open.id;
        }
        assert!(!asking.is_finished(), "it was answered by nobody");
        tokio::task::yield_now().await;
    };
    let answer = kit
        .sessions
        .answer(session, open, PermissionAnswer::AllowAlways, "ann".into());
    answer.await.unwrap();
    asking.await.unwrap().unwrap().0
}

/// A line for the shell can be as long as an agent likes. It is asked about all the same, and is nothing to remember.
#[tokio::test]
async fn what_is_too_long_to_be_remembered_is_allowed_once() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "work").await.turn.id;
    let led = kit.puppet.next().await;
    let asker = led.turn.asker.clone();
    assert_eq!(
        answered(&kit, session, &asker, "make").await,
        PermissionAnswer::AllowAlways
    );
    let huge = "x".repeat(2 << 20);
    assert_eq!(
        answered(&kit, session, &asker, &huge).await,
        PermissionAnswer::AllowAlways
    );
    let rules = kit.get(session).await.record.rules;
    let patterns: Vec<_> = rules.iter().map(|rule| rule.pattern.as_deref()).collect();
    assert_eq!(patterns, [Some("make")]);
    led.end(AgentEnd::Done);
    assert_eq!(kit.end(turn).await.record.state, TurnState::Done);
}
