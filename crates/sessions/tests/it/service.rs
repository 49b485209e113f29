//! The life of sessions and turns.

use std::sync::Arc;

use kernel::{Clock, ManualClock};
use protocol::{IfBusy, PermissionAnswer, RulePermission, SessionState, TurnId, TurnState, Usage};
use sessions::{AgentEnd, Question, SessionError, Started, TurnEvent};

use crate::kit::{Kit, PATIENCE, prompt};

fn states(events: &[TurnEvent]) -> Vec<&'static str> {
    events.iter().map(TurnEvent::kind).collect()
}

#[tokio::test]
async fn a_turn_is_accepted_runs_and_ends() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let accepted = kit.send(session, "do it\nplease").await;
    assert_eq!(accepted.turn.record.state, TurnState::Running);
    assert_eq!(accepted.session.record.state(), SessionState::Running);
    assert_eq!(accepted.session.record.title, "do it");
    let led = kit.puppet.next().await;
    led.turn.sink.text("hel").await.unwrap();
    led.turn.sink.text("lo").await.unwrap();
    led.turn.sink.reasoning("hm").await.unwrap();
    led.turn.sink.text("more").await.unwrap();
    let used = Usage {
        input_tokens: 3,
        ..Usage::default()
    };
    led.turn.sink.used(used).await.unwrap();
    led.end(AgentEnd::Done);
    let ended = kit.end(accepted.turn.id).await;
    assert_eq!((ended.record.state, ended.record.usage), (TurnState::Done, used));
    let now = kit.get(session).await;
    assert_eq!(now.record.state(), SessionState::Idle);
    assert_eq!(now.record.last_state, Some(TurnState::Done));
    let events = kit.events(accepted.turn.id).await;
    assert_eq!(
        states(&events),
        [
            "accepted",
            "state",
            "text",
            "text",
            "reasoning",
            "text",
            "usage",
            "state"
        ]
    );
    let text = |item: u64, delta: &str| TurnEvent::Text {
        item,
        delta: delta.to_owned(),
    };
    assert_eq!((&events[2], &events[5]), (&text(0, "hel"), &text(2, "more")));
}

#[tokio::test]
async fn prompts_wait_in_order_and_can_be_changed_until_they_run() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let first = kit.send(session, "one").await.turn.id;
    let mut waiting = Vec::new();
    for text in ["two", "three", "four"] {
        let accepted = kit.send(session, text).await;
        assert_eq!(accepted.turn.record.state, TurnState::Queued);
        waiting.push(accepted.turn.id);
    }
    let by = || "ann".into();
    kit.sessions
        .move_queued(session, waiting[2], 0, by())
        .await
        .unwrap();
    kit.sessions
        .remove_queued(session, waiting[0], by())
        .await
        .unwrap();
    let changed = prompt("three, but better").prompt;
    kit.sessions
        .edit_queued(session, waiting[1], changed, by())
        .await
        .unwrap();
    let refused = kit
        .sessions
        .remove_queued(session, first, by())
        .await
        .unwrap_err();
    assert!(matches!(refused, SessionError::TurnNotQueued { .. }), "{refused}");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let led = kit.puppet.next().await;
        assert!(!kit.puppet.has_more().await, "one at a time");
        seen.push(led.turn.prompt.text.clone());
        let turn = led.turn.turn;
        led.end(AgentEnd::Done);
        kit.end(turn).await;
    }
    assert_eq!(seen, ["one", "four", "three, but better"]);
    assert_eq!(kit.end(waiting[0]).await.record.state, TurnState::Cancelled);
    let turns = kit.sessions.turns(session, None, 10).await.unwrap();
    let numbers: Vec<u64> = turns.iter().map(|turn| turn.record.number).collect();
    assert_eq!(numbers, [3, 4, 1], "newest first, in the order in which they ran");
}

#[tokio::test]
async fn of_many_starts_one_wins_and_the_others_are_told_of_it() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let starts = (0..32).map(|number| {
        let sessions = kit.sessions.clone();
        tokio::spawn(async move {
            let mut new = prompt(&number.to_string());
            new.if_busy = IfBusy::Refuse;
            sessions.start_turn(session, new).await
        })
    });
    let mut won = Vec::new();
    let mut told = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        match start.await.unwrap() {
            Ok(accepted) => won.push(accepted.turn.id),
            Err(SessionError::TurnActive { turn, .. }) => told.push(turn),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((won.len(), told.len()), (1, 31));
    assert!(told.iter().all(|turn| *turn == won[0]));
    kit.puppet.next().await.end(AgentEnd::Done);
    kit.end(won[0]).await;
    assert!(!kit.puppet.has_more().await);
}

#[tokio::test]
async fn the_same_key_is_the_same_turn() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let keyed = |text: &str| {
        let mut new = prompt(text);
        new.idempotency_key = Some("key".to_owned());
        new
    };
    let starts = (0..16).map(|_| {
        let (sessions, new) = (kit.sessions.clone(), keyed("one"));
        tokio::spawn(async move { sessions.start_turn(session, new).await.unwrap() })
    });
    let mut turns: Vec<(TurnId, Started)> = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        let accepted = start.await.unwrap();
        turns.push((accepted.turn.id, accepted.started));
    }
    assert!(turns.iter().all(|(turn, _)| *turn == turns[0].0));
    assert_eq!(
        turns
            .iter()
            .filter(|(_, started)| *started == Started::New)
            .count(),
        1
    );
    let other = kit.sessions.start_turn(session, keyed("two")).await.unwrap_err();
    assert!(matches!(other, SessionError::KeyReused { turn } if turn == turns[0].0));
    assert_eq!(kit.get(session).await.record.prompts, 1);
}

#[tokio::test]
async fn a_stop_frees_the_session_when_the_agent_has_ended_and_not_before() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "one").await.turn.id;
    let led = kit.puppet.next().await;
    led.turn.sink.text("partial").await.unwrap();
    let stopping = kit
        .sessions
        .cancel_turn(session, None, "ann".into(), "enough".to_owned())
        .await
        .unwrap();
    assert_eq!(stopping.record.state(), SessionState::Stopping);
    // The next prompt is not refused, even by one who does not want to wait.
    let mut next = prompt("two");
    next.if_busy = IfBusy::Refuse;
    let next = kit.sessions.start_turn(session, next).await.unwrap().turn.id;
    let ended = kit.end(turn).await;
    assert_eq!(ended.record.state, TurnState::Cancelled);
    let led = kit.puppet.next().await;
    assert_eq!(led.turn.turn, next);
    led.end(AgentEnd::Done);
    kit.end(next).await;
    assert!(
        states(&kit.events(turn).await).contains(&"text"),
        "what it said stays"
    );
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    kit.send(session, "one").await;
    let led = kit.puppet.next().await;
    let asker = led.turn.asker.clone();
    let asking = tokio::spawn(async move {
        asker
            .ask(Question {
                item: None,
                tool: "shell".to_owned(),
                subject: "rm -rf".to_owned(),
                options: Vec::new(),
            })
            .await
    });
    let asked = loop {
        let now = kit.get(session).await;
        if now.record.state() == SessionState::Asking {
            break now.record.active.unwrap().asked[0].id;
        }
        tokio::task::yield_now().await;
    };
    let answer = |answer, by: &str| kit.sessions.answer(session, asked, answer, by.into());
    let first = answer(PermissionAnswer::AllowAlways, "ann").await.unwrap();
    let second = answer(PermissionAnswer::Deny, "bob").await.unwrap();
    assert_eq!(
        (first.clone(), second),
        ((PermissionAnswer::AllowAlways, "ann".into()), first)
    );
    assert_eq!(asking.await.unwrap().unwrap().0, PermissionAnswer::AllowAlways);
    let rules = led.turn.asker.rules().await;
    assert_eq!(
        (rules[0].tool.as_str(), rules[0].permission),
        ("shell", RulePermission::Allow)
    );
    led.end(AgentEnd::Done);
}

#[tokio::test]
async fn silence_means_no_where_the_settings_have_a_limit() {
    let limit = Some(std::time::Duration::from_millis(10));
    let kit = Kit::with(|_, settings| settings.permission_timeout = limit).await;
    let session = kit.session().await;
    kit.send(session, "one").await;
    let led = kit.puppet.next().await;
    let question = Question {
        item: None,
        tool: "shell".to_owned(),
        subject: "rm -rf".to_owned(),
        options: Vec::new(),
    };
    let (answer, by) = led.turn.asker.ask(question).await.unwrap();
    assert_eq!((answer, &*by), (PermissionAnswer::Deny, ""));
    assert_eq!(kit.get(session).await.record.state(), SessionState::Running);
    led.end(AgentEnd::Done);
}

/// Nobody is there for longer than a turn may take, and then somebody answers.
#[tokio::test]
async fn a_question_waits_as_long_as_it_takes() {
    let clock = ManualClock::new();
    let kit = Kit::with_clock(Arc::clone(&clock) as Arc<dyn Clock>).await;
    let session = kit.session().await;
    let turn = kit.send(session, "one").await.turn.id;
    let led = kit.puppet.next().await;
    let asker = led.turn.asker.clone();
    let question = Question {
        item: None,
        tool: "shell".to_owned(),
        subject: "make".to_owned(),
        options: Vec::new(),
    };
    let asking = tokio::spawn(async move { asker.ask(question).await });
    kit.events_until(turn, "permission_asked").await;
    // Nobody counts the time any more: neither that of the question nor that of the turn.
    let standing_still = async {
        while clock.pending_alarms() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, standing_still).await;
    assert!(waited.is_ok(), "something is to happen at a certain time");
    let hours = |hours: u64| std::time::Duration::from_secs(hours * 60 * 60);
    for _ in 0..20 {
        clock.advance(hours(7));
        let now = kit.get(session).await;
        assert_eq!(now.record.state(), SessionState::Asking);
        tokio::task::yield_now().await;
    }
    let asked = kit.get(session).await.record.active.unwrap().asked[0].id;
    let answer = kit
        .sessions
        .answer(session, asked, PermissionAnswer::Allow, "ann".into());
    assert_eq!(answer.await.unwrap().0, PermissionAnswer::Allow);
    assert_eq!(asking.await.unwrap().unwrap().0, PermissionAnswer::Allow);
    // From here on its time counts again.
    let over = tokio::spawn(async move { led.turn.scope.wait().await });
    while !over.is_finished() {
        clock.advance(hours(1));
        tokio::task::yield_now().await;
    }
    let ended = kit.end(turn).await;
    let error = ended.record.error.unwrap();
    assert_eq!(
        (ended.record.state, error.code.as_str()),
        (TurnState::Failed, "limit_time")
    );
}

#[tokio::test]
async fn the_next_life_finds_no_turn_running_and_goes_on_with_what_waits() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "one").await.turn.id;
    let led = kit.puppet.next().await;
    led.turn.sink.text("partial").await.unwrap();
    led.turn.sink.flush().await.unwrap();
    let waiting = kit.send(session, "two").await.turn.id;
    let next_life = kit.next_life().await;
    let buried = next_life.turn(turn).await.unwrap();
    assert_eq!(buried.record.state, TurnState::Interrupted);
    let next = kit.puppet.next().await;
    assert_eq!(next.turn.turn, waiting);
    // The life before is fenced off: whatever it still says, nobody hears.
    led.turn.sink.text("too late").await.ok();
    let refused = led.turn.sink.flush().await;
    assert!(refused.is_err(), "it takes nothing more");
    next.end(AgentEnd::Done);
    kit.end(waiting).await;
    let events = kit.events(turn).await;
    assert_eq!(states(&events), ["accepted", "state", "text", "state"]);
}

#[tokio::test]
async fn a_turn_whose_owner_is_there_is_not_cleared_and_what_moved_is_not_either() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let idle = kit.get(session).await;
    let turn = kit.send(session, "one").await.turn.id;
    let seen = kit.get(session).await;
    let stale = kit.sessions.clear_stale_turn(session, &idle).await.unwrap_err();
    assert!(matches!(stale, SessionError::Stale { .. }), "{stale}");
    let alive = kit.sessions.clear_stale_turn(session, &seen).await.unwrap_err();
    assert!(
        matches!(alive, SessionError::NotStale { turn: named } if named == turn),
        "{alive}"
    );
    kit.puppet.next().await.end(AgentEnd::Done);
    kit.end(turn).await;
}

#[tokio::test]
async fn a_fork_shares_the_past_and_nothing_else() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let mut turns = Vec::new();
    for text in ["one", "two"] {
        turns.push(kit.send(session, text).await.turn.id);
        kit.puppet.next().await.end(AgentEnd::Done);
        kit.end(turns[turns.len() - 1]).await;
    }
    let fork = kit
        .sessions
        .fork(session, Some(turns[0]), "bob".into())
        .await
        .unwrap();
    let third = kit.send(fork.id, "other").await.turn.id;
    kit.puppet.next().await.end(AgentEnd::Done);
    kit.end(third).await;
    let ids = |turns: Vec<sessions::Turn>| turns.iter().map(|turn| turn.id).collect::<Vec<_>>();
    let of_fork = kit.sessions.turns(fork.id, None, 10).await.unwrap();
    assert_eq!(ids(of_fork), [third, turns[0]]);
    let of_parent = kit.sessions.turns(session, None, 10).await.unwrap();
    assert_eq!(ids(of_parent), [turns[1], turns[0]]);
    let by = || "ann".into();
    let refused = kit.sessions.remove(session, by()).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::HasForks { forks: 1, .. }),
        "{refused}"
    );
    kit.sessions.remove(fork.id, by()).await.unwrap();
    assert!(matches!(
        kit.sessions.turn(third).await,
        Err(SessionError::TurnNotFound(_))
    ));
    kit.sessions.turn(turns[0]).await.unwrap();
    kit.sessions.remove(session, by()).await.unwrap();
    assert!(matches!(
        kit.sessions.get(session).await,
        Err(SessionError::NotFound(_))
    ));
    assert!(matches!(
        kit.sessions.turn(turns[0]).await,
        Err(SessionError::TurnNotFound(_))
    ));
}

#[tokio::test]
async fn a_daemon_that_ends_leaves_interrupted_turns_and_free_sessions() {
    let kit = Kit::new().await;
    let session = kit.session().await;
    let turn = kit.send(session, "one").await.turn.id;
    let _led = kit.puppet.next().await;
    kit.sessions.close();
    let deadline = kernel::Deadline::after(&kernel::SystemClock::shared(), crate::kit::PATIENCE);
    kit.sessions.drain(&deadline).await;
    let ended = kit.sessions.turn(turn).await.unwrap();
    assert_eq!(ended.record.state, TurnState::Interrupted);
    assert_eq!(kit.get(session).await.record.state(), SessionState::Idle);
    let refused = kit.sessions.start_turn(session, prompt("two")).await.unwrap_err();
    assert!(matches!(refused, SessionError::Closed));
}
