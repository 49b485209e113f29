//! Callers that go away in the middle of a call: what has taken effect is followed by what it promises.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use protocol::{SessionId, SessionState, TurnId, TurnState};
use sessions::AgentEnd;

use crate::kit::{Kit, prompt};

/// More steps than any call here takes.
const STEPS: usize = 24;

/// Lets a call take so many steps and goes away then, whatever has come of it. Returns whether it was done before.
async fn leave_after<T>(steps: usize, call: impl Future<Output = T>) -> bool {
    let mut call = pin!(call);
    let mut left = steps;
    poll_fn(|context| match left {
        0 => Poll::Ready(false),
        _ => {
            left -= 1;
            call.as_mut().poll(context).map(|_| true)
        }
    })
    .await
}

#[tokio::test]
async fn a_prompt_whose_sender_goes_away_runs_all_the_same() {
    let kit = Kit::new().await;
    let mut stayed = 0;
    for steps in 1..STEPS {
        let session = kit.session().await;
        let mut new = prompt("go");
        new.idempotency_key = Some("once".to_owned());
        let starting = kit.sessions.start_turn(session, new.clone());
        stayed += usize::from(leave_after(steps, starting).await);
        // Asked again it is the same, and it runs.
        let again = kit.sessions.start_turn(session, new).await.unwrap();
        kit.puppet.next().await.end(AgentEnd::Done);
        let ended = kit.end(again.turn.id).await;
        assert_eq!(ended.record.state, TurnState::Done, "left after {steps} steps");
        let now = kit.get(session).await.record;
        assert_eq!((now.state(), now.prompts), (SessionState::Idle, 1), "{steps}");
        assert!(!kit.puppet.has_more().await, "it runs twice");
    }
    assert!(stayed > 0, "no call was ever done within {STEPS} steps");
    kit.at_rest().await;
}

#[tokio::test]
async fn what_waits_behind_a_turn_that_is_cleared_begins_though_nobody_waits_for_it() {
    let kit = Kit::new().await;
    let next = kit.next_life().await;
    let mut stayed = 0;
    for steps in 1..STEPS {
        let session = kit.session().await;
        let waiting = in_a_life_that_is_killed(&kit, session);
        let seen = kit.get(session).await;
        stayed += usize::from(leave_after(steps, next.clear_stale_turn(session, &seen)).await);
        // If it went away before anything was done, somebody else does it.
        let seen = kit.get(session).await;
        if seen.record.queue.contains(&waiting) {
            next.clear_stale_turn(session, &seen).await.ok();
        }
        kit.puppet.next().await.end(AgentEnd::Done);
        let ended = kit.end(waiting).await;
        assert_eq!(ended.record.state, TurnState::Done, "left after {steps} steps");
    }
    assert!(stayed > 0, "no call was ever done within {STEPS} steps");
}

/// Begins a turn, with another prompt behind it, in a life that ends without a word. Returns the turn that waits.
fn in_a_life_that_is_killed(kit: &Kit, session: SessionId) -> TurnId {
    // Its tasks are those of a runtime of its own, and gone with it.
    std::thread::scope(|scope| {
        let life = scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let (_running, waiting) = runtime.block_on(async {
                kit.send(session, "of an earlier life").await;
                let running = kit.puppet.next().await;
                (running, kit.send(session, "waits").await.turn.id)
            });
            drop(runtime);
            waiting
        });
        life.join().unwrap()
    })
}
