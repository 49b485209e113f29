//! What must hold while many start, stop, clear and read at once, and however long a session is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eventlog::{Sequence, StreamId, TailItem};
use kernel::CancellationToken;
use protocol::{AgentChoice, IfBusy, SessionId, SessionState, TurnId, TurnState};
use sessions::agents::rehearsal::Rehearsal;
use sessions::{SessionError, TurnEvent, from_log};

use crate::kit::{Kit, PATIENCE, prompt};

async fn kit() -> Kit {
    Kit::with(|agents, settings| {
        agents.insert("rehearsal".to_owned(), Rehearsal::new("rehearsal"));
        settings.default_agent = "rehearsal".to_owned();
    })
    .await
}

fn scripted(text: &str, script: &str) -> sessions::NewTurn {
    let mut new = prompt(text);
    new.agent = Some(AgentChoice {
        name: "rehearsal".to_owned(),
        script: Some(script.to_owned()),
        ..AgentChoice::default()
    });
    new
}

/// How many bytes the heads of a session and of its newest turn have, and how many events that turn has.
async fn weight(kit: &Kit, session: SessionId, turn: TurnId) -> (usize, usize, usize) {
    let head = |name: String| async move {
        let stored = kit
            .log
            .head(&StreamId::new(&name).unwrap())
            .await
            .unwrap()
            .unwrap();
        stored.head.body.len()
    };
    let events = kit.events(turn).await.len();
    (
        head(format!("session/{session}")).await,
        head(format!("turn/{turn}")).await,
        events,
    )
}

#[tokio::test]
async fn a_turn_writes_as_much_in_a_long_session_as_in_a_short_one() {
    let kit = kit().await;
    let session = kit.session().await;
    let script = "steps: [say: {text: 'one two three'}]";
    let mut weights = Vec::new();
    for _ in 0..150 {
        let turn = kit
            .sessions
            .start_turn(session, scripted("a prompt", script))
            .await
            .unwrap()
            .turn
            .id;
        kit.end(turn).await;
        weights.push(weight(&kit, session, turn).await);
    }
    let (short, long) = (weights[1], weights[149]);
    assert_eq!(short.2, long.2, "the same events");
    // The numbers in them have more digits, and nothing else grows.
    assert!(
        long.0 <= short.0 + 16 && long.1 <= short.1 + 16,
        "{short:?} {long:?}"
    );
}

/// What a reader has heard of a turn, from its beginning to its end.
async fn heard(kit: &Kit, turn: TurnId) -> (String, TurnState) {
    let stream = StreamId::new(&format!("turn/{turn}")).unwrap();
    let scope = CancellationToken::new().scope();
    let mut tail = kit.log.tail(&stream, Sequence::default(), &scope);
    let mut text = String::new();
    loop {
        let item = tokio::time::timeout(PATIENCE, tail.next()).await;
        let TailItem::Event(event) = item.unwrap().unwrap() else {
            panic!("nothing was dropped here")
        };
        match from_log(&event) {
            Some(TurnEvent::Text { delta, .. }) => text.push_str(&delta),
            Some(TurnEvent::State { state, .. }) if state.is_terminal() => return (text, state),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_a_storm_of_starts_stops_and_clears_every_accepted_prompt_runs_once_and_ends() {
    let kit = Arc::new(kit().await);
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(kit.session().await);
    }
    let accepted: Arc<Mutex<BTreeMap<TurnId, String>>> = Arc::default();
    let mut storm = Vec::new();
    for number in 0..12_usize {
        let (kit, accepted) = (Arc::clone(&kit), Arc::clone(&accepted));
        let session = sessions[number % sessions.len()];
        storm.push(tokio::spawn(async move {
            for round in 0..10 {
                match (number + round) % 4 {
                    3 => clear_and_stop(&kit, session).await,
                    kind => {
                        let text = format!("{number}-{round}");
                        let script = "steps: [say: {text: 'a {{prompt}} b'}, sleep: 2ms, say: {text: ' c'}]";
                        let mut new = scripted(&text, script);
                        new.if_busy = if kind == 0 { IfBusy::Refuse } else { IfBusy::Queue };
                        match kit.sessions.start_turn(session, new).await {
                            Ok(taken) => drop(accepted.lock().unwrap().insert(taken.turn.id, text)),
                            Err(SessionError::TurnActive { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            }
        }));
    }
    for task in storm {
        task.await.unwrap();
    }
    let accepted = accepted.lock().unwrap().clone();
    let mut done = 0;
    for (turn, prompt) in &accepted {
        let record = kit.end(*turn).await.record;
        let (text, state) = heard(&kit, *turn).await;
        assert_eq!(state, record.state, "the stream ends as its turn did");
        let whole = format!("a {prompt} b c");
        match state {
            TurnState::Done => {
                done += 1;
                assert_eq!(text, whole);
            }
            TurnState::Cancelled => assert!(whole.starts_with(&text), "{text}"),
            other => panic!("{other:?}: {:?}", record.error),
        }
    }
    assert!(done > 0);
    for session in sessions {
        let now = kit.get(session).await.record;
        assert_eq!((now.state(), now.queue.len()), (SessionState::Idle, 0));
        // Those that were taken away while they waited never ran.
        let turns = kit.sessions.turns(session, None, 1000).await.unwrap();
        assert!(turns.iter().all(|turn| accepted.contains_key(&turn.id)));
    }
    kit.at_rest().await;
}

/// Clears whatever it sees, and wants a turn to stop.
async fn clear_and_stop(kit: &Kit, session: SessionId) {
    let seen = kit.get(session).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    match kit.sessions.clear_stale_turn(session, &seen).await {
        Ok(_) | Err(SessionError::Stale { .. } | SessionError::NotStale { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    kit.sessions
        .cancel_turn(session, None, "bob".into(), "a storm".to_owned())
        .await
        .unwrap();
}
