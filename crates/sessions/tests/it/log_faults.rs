//! A log that fails for a while: nothing is missed, nothing stays running, and what failed is said.

use std::time::Duration;

use eventlog::Fault;
use protocol::{SessionId, SessionState, TurnId, TurnState};
use sessions::{AgentEnd, TurnEvent};

use crate::kit::{Kit, PATIENCE};

/// Waits until something has gone wrong so often.
async fn struck(kit: &Kit, fault: Fault, times: usize) {
    let waiting = async {
        while kit.faults.happened(fault) < times {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{fault:?} has not happened {times} times");
}

/// What the agent has said in a turn, as the log has it.
async fn said(kit: &Kit, turn: TurnId) -> String {
    let events = kit.events(turn).await;
    let said = events.iter().filter_map(|event| match event {
        TurnEvent::Text { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    said.collect()
}

/// Stops the turn that runs, and says how it ended.
async fn stopped(kit: &Kit, session: SessionId) -> TurnState {
    let turn = kit.get(session).await.record.last_turn.unwrap();
    let stopping = kit
        .sessions
        .cancel_turn(session, None, "ann".into(), String::new());
    stopping.await.unwrap();
    kit.end(turn).await.record.state
}

#[tokio::test]
async fn a_stop_is_seen_although_the_session_could_not_be_followed() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    kit.faults.plan(Fault::Events, "session/", 0..2);
    kit.send(session, "hello").await;
    let _led = kit.puppet.next().await;
    struck(&kit, Fault::Events, 1).await;
    assert_eq!(stopped(&kit, session).await, TurnState::Cancelled);
}

#[tokio::test]
async fn a_stop_is_seen_although_the_session_could_not_be_read_then() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    kit.send(session, "hello").await;
    let _led = kit.puppet.next().await;
    let before = kit.get(session).await;
    assert!(before.record.active.is_some());
    // Two reads are those of the test, and two are made to ask for the stop. The next one is made because of it.
    kit.faults.plan(Fault::Head, "session/", 3..5);
    assert_eq!(stopped(&kit, session).await, TurnState::Cancelled);
    assert_eq!(kit.faults.happened(Fault::Head), 2);
}

#[tokio::test]
async fn prompts_that_wait_begin_when_the_log_is_back() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    kit.send(session, "one").await;
    kit.send(session, "two").await;
    let first = kit.puppet.next().await;
    // The first read is made for the end of the first turn.
    kit.faults.plan(Fault::Head, "session/", 1..4);
    first.end(AgentEnd::Done);
    let second = kit.puppet.next().await;
    assert_eq!(kit.faults.happened(Fault::Head), 3);
    assert_eq!(second.turn.prompt.text, "two");
    second.end(AgentEnd::Done);
}

/// What was acknowledged is taken back, and nobody else has the turn: it is written again, and the turn goes on.
#[tokio::test]
async fn words_that_were_taken_back_are_written_again() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "talk").await.turn.id;
    let led = kit.puppet.next().await;
    led.turn.sink.text("kept ").await.unwrap();
    led.turn.sink.flush().await.unwrap();
    kit.faults.plan(Fault::RollBack, "turn/", 0..1);
    led.turn.sink.text("lost ").await.unwrap();
    struck(&kit, Fault::RollBack, 1).await;
    // It is noticed with the next words.
    led.turn.sink.text("more").await.unwrap();
    led.end(AgentEnd::Done);
    assert_eq!(kit.end(turn).await.record.state, TurnState::Done);
    assert_eq!(said(&kit, turn).await, "kept lost more");
}

/// The same, and there are no next words: it is noticed with the end of the turn.
#[tokio::test]
async fn last_words_that_were_taken_back_are_written_before_the_end() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "talk").await.turn.id;
    kit.send(session, "go on").await;
    let led = kit.puppet.next().await;
    kit.faults.plan(Fault::RollBack, "turn/", 0..1);
    led.turn.sink.text("last words").await.unwrap();
    struck(&kit, Fault::RollBack, 1).await;
    led.end(AgentEnd::Done);
    assert_eq!(kit.end(turn).await.record.state, TurnState::Done);
    assert_eq!(said(&kit, turn).await, "last words");
    let next = kit.puppet.next().await;
    assert_eq!(next.turn.prompt.text, "go on");
    next.end(AgentEnd::Done);
}

/// The disk is full: what was acknowledged is lost, and nothing is taken. When there is room, the turn ends.
#[tokio::test]
async fn a_turn_ends_when_there_is_room_again() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "talk").await.turn.id;
    let led = kit.puppet.next().await;
    kit.faults.plan(Fault::RollBack, "turn/", 0..1);
    led.turn.sink.text("lost").await.unwrap();
    struck(&kit, Fault::RollBack, 1).await;
    kit.faults.plan(Fault::Commit, "turn/", 0..4);
    led.turn.sink.text("refused").await.unwrap();
    let ended = kit.end(turn).await;
    assert_eq!(kit.faults.happened(Fault::Commit), 4);
    assert_eq!(ended.record.state, TurnState::Failed);
    assert_eq!(
        ended.record.error.unwrap().text,
        "the output of the agent could not be stored: the disk is full"
    );
    assert_eq!(kit.get(session).await.record.state(), SessionState::Idle);
    kit.at_rest().await;
}

/// Whether a plan has work in it cannot be known while it cannot be read, so it is not forgotten.
#[tokio::test]
async fn a_plan_that_cannot_be_read_at_the_end_is_not_forgotten() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "work").await.turn.id;
    let led = kit.puppet.next().await;
    let plan = led.turn.desk.plan().await.unwrap();
    kit.faults.plan(Fault::Head, "plan/", 0..2);
    led.end(AgentEnd::Done);
    let ended = kit.end(turn).await;
    assert_eq!(ended.record.plan, Some(plan));
    let events = kit.events(turn).await;
    let trouble = events.iter().find_map(|event| match event {
        TurnEvent::Trouble { code, text } => Some((code.as_str(), text.clone())),
        _ => None,
    });
    let (code, text) = trouble.unwrap();
    assert_eq!(code, "plan_not_finished");
    assert!(text.contains("the log cannot be written"), "{text}");
}

/// A session that does not name the plan of its turn would work in another one the next time.
#[tokio::test]
async fn a_plan_that_the_session_could_not_name_is_not_worked_in() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    kit.send(session, "work").await;
    let led = kit.puppet.next().await;
    kit.faults.plan(Fault::Commit, "session/", 0..1);
    led.turn.desk.plan().await.unwrap_err();
    let plan = led.turn.desk.plan().await.unwrap();
    assert_eq!(kit.get(session).await.record.plan, Some(plan));
    let all = plans::PlanQuery {
        limit: 10,
        ..plans::PlanQuery::default()
    };
    assert_eq!(kit.plans.list(all).await.unwrap().len(), 1);
    led.end(AgentEnd::Done);
}

/// The database is away for a while: the agent goes on, and everything that it said is there once.
#[tokio::test]
async fn a_turn_outlasts_an_outage() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "talk").await.turn.id;
    let led = kit.puppet.next().await;
    kit.faults.plan(Fault::AnswerLost, "turn/", 0..1);
    kit.faults.plan(Fault::Away, "turn/", 1..4);
    led.turn.sink.text("one, ").await.unwrap();
    struck(&kit, Fault::AnswerLost, 1).await;
    led.turn.sink.text("two").await.unwrap();
    struck(&kit, Fault::Away, 3).await;
    led.end(AgentEnd::Done);
    let ended = kit.end(turn).await;
    assert_eq!(ended.record.state, TurnState::Done, "{:?}", ended.record.error);
    assert_eq!(said(&kit, turn).await, "one, two");
}
