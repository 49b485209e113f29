//! The steps of `sessions.feature`.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use cucumber::{given, then, when};

use crate::{
    sessions_feature::{Begun, SessionsWorld},
    sessions_held::Held,
    sessions_runtime::{Heard, Runtime},
};

/// At how many points something is held, one after the other. Nothing here waits as often: at the last points it is over
/// already, which is one more order to look at. Whether an answer of the log has come before it is waited for differs from
/// one time to the next, so the first time that it is over does not say that every point has been tried.
const POINTS: usize = 16;

#[given(expr = "sessions on {word}")]
async fn sessions_on(world: &mut SessionsWorld, engine: String) {
    world.open(&engine).await;
}

#[given(expr = "two daemons on one {word}")]
async fn two_daemons(world: &mut SessionsWorld, engine: String) {
    world.open_two(&engine).await;
}

#[given("a turn that runs")]
async fn a_turn_that_runs(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    world.session = runtime.create().await;
    let turn = runtime.start(&world.session, "one", None).await.unwrap();
    until(world, "it is at work", || runtime.at_work().contains(&turn)).await;
    world.turns.push(turn);
}

#[given(expr = "a session with {int} turns")]
async fn a_session_with_turns(world: &mut SessionsWorld, count: usize) {
    let runtime = world.runtime();
    world.session = runtime.create().await;
    for _ in 0..count {
        let turn = runtime.start(&world.session, "a prompt", None).await.unwrap();
        runtime.let_go(&turn).await;
        freed(world, &runtime).await;
    }
}

#[given("a reader of it")]
async fn a_reader(world: &mut SessionsWorld) {
    world.reader = world.runtime().attach(&world.turns[0]).await;
}

/// Waits until it is so.
async fn until(world: &SessionsWorld, what: &str, is_so: impl Fn() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    world.within(what, look).await;
}

/// Waits until no turn is active in the session.
async fn freed(world: &SessionsWorld, runtime: &Arc<dyn Runtime>) {
    let look = async {
        while runtime.active(&world.session).await.is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    world.within("the session is free", look).await;
}

#[when("a reader clears a turn that was left behind, and is held at every point while the next turn starts")]
async fn a_clear_is_held(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    let mut held = 0;
    for point in 0..POINTS {
        let session = runtime.create().await;
        runtime.leave_behind(&session).await;
        let mut clear = Held::new(runtime.look_and_clear(&session));
        let is_over = clear.hold_at(point).await;
        let turn = clear
            .let_happen(runtime.start(&session, "next", None))
            .await
            .unwrap();
        clear.finish().await;
        world.begun.push(Begun { session, turn });
        held += usize::from(!is_over);
    }
    assert!((2 + 1..POINTS).contains(&held), "it was held at {held} points");
}

#[when("a turn starts, and is held at every point while a reader looks and clears")]
async fn a_start_is_held(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    hold_starts(world, &runtime).await;
}

#[when("a turn starts, and is held at every point while a reader of the other daemon looks and clears")]
async fn a_start_is_held_from_elsewhere(world: &mut SessionsWorld) {
    let other = world.other();
    hold_starts(world, &other).await;
}

async fn hold_starts(world: &mut SessionsWorld, reader: &Arc<dyn Runtime>) {
    let runtime = world.runtime();
    let mut held = 0;
    for point in 0..POINTS {
        let session = runtime.create().await;
        let mut start = Held::new(runtime.start(&session, "one", None));
        let is_over = start.hold_at(point).await;
        start.let_happen(reader.look_and_clear(&session)).await;
        let turn = start.finish().await.unwrap();
        reader.look_and_clear(&session).await;
        world.begun.push(Begun { session, turn });
        held += usize::from(!is_over);
    }
    assert!((1 + 1..POINTS).contains(&held), "it was held at {held} points");
}

#[when("40 turns start while a reader looks and clears at every point")]
async fn forty_turns_start(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    for _ in 0..40 {
        let session = runtime.create().await;
        let mut start = Held::new(runtime.start(&session, "one", None));
        while !start.hold_at(1).await {
            start.let_happen(runtime.look_and_clear(&session)).await;
        }
        let turn = start.finish().await.unwrap();
        world.begun.push(Begun { session, turn });
    }
}

#[when("a turn starts, and is held at every point while another one starts")]
async fn two_start(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    hold_two(world, &runtime, None).await;
}

#[when("a turn starts, and is held at every point while another one starts on the other daemon")]
async fn two_start_on_two(world: &mut SessionsWorld) {
    let other = world.other();
    hold_two(world, &other, None).await;
}

#[when("a turn starts with a key, and is held at every point while it is sent again")]
async fn it_is_sent_again(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    hold_two(world, &runtime, Some("key")).await;
}

async fn hold_two(world: &mut SessionsWorld, second: &Arc<dyn Runtime>, key: Option<&str>) {
    let first = world.runtime();
    let mut held = 0;
    for point in 0..POINTS {
        let session = first.create().await;
        let mut start = Held::new(first.start(&session, "one", key));
        let is_over = start.hold_at(point).await;
        let other = start.let_happen(second.start(&session, "one", key)).await;
        let both = [start.finish().await, other];
        for turn in both.iter().flatten() {
            let begun = Begun {
                session: session.clone(),
                turn: turn.clone(),
            };
            world.begun.push(begun);
        }
        world.both.push(both);
        held += usize::from(!is_over);
    }
    assert!((1 + 1..POINTS).contains(&held), "it was held at {held} points");
}

#[when("somebody renames a session, and is held at every point while a turn starts")]
async fn a_rename_is_held(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    let mut held = 0;
    for point in 0..POINTS {
        let session = runtime.create().await;
        let mut rename = Held::new(runtime.rename(&session, "its new title"));
        let is_over = rename.hold_at(point).await;
        let turn = rename
            .let_happen(runtime.start(&session, "one", None))
            .await
            .unwrap();
        rename.finish().await;
        world.begun.push(Begun { session, turn });
        held += usize::from(!is_over);
    }
    assert!((1 + 1..POINTS).contains(&held), "it was held at {held} points");
}

#[when(expr = "{int} daemons start, and another one looks and clears as soon as each has begun a turn")]
async fn daemons_start(world: &mut SessionsWorld, count: usize) {
    let other = world.other();
    for _ in 0..count {
        let session = other.create().await;
        let fresh = world.another(&world.database().log).await;
        let turn = fresh.start(&session, "one", None).await.unwrap();
        other.look_and_clear(&session).await;
        world.begun.push(Begun { session, turn });
    }
}

/// How long the lease of a life that is over goes on, and how long it is looked at what others make of it.
const LEFT_LEASE: Duration = Duration::from_secs(1);
const LOOKED_FOR: Duration = Duration::from_secs(5);

#[when(
    "a daemon is killed and starts again, and another one looks and clears until the lease of before is long over"
)]
async fn a_daemon_starts_again(world: &mut SessionsWorld) {
    let other = world.other();
    let session = other.create().await;
    let again = world.after_kill(LEFT_LEASE).await;
    let turn = again.start(&session, "one", None).await.unwrap();
    let began = Instant::now();
    while began.elapsed() < LOOKED_FOR {
        other.look_and_clear(&session).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.begun.push(Begun { session, turn });
    world.runtime = Some(again);
}

#[when("somebody renames it")]
async fn somebody_renames_it(world: &mut SessionsWorld) {
    world.runtime().rename(&world.session, "its new title").await;
}

#[when("somebody stops it")]
async fn somebody_stops_it(world: &mut SessionsWorld) {
    world.runtime().stop(&world.session).await;
}

#[when("its agent lets go")]
async fn its_agent_lets_go(world: &mut SessionsWorld) {
    world.runtime().let_go(&world.turns[0]).await;
}

#[when("the next prompt is sent")]
async fn the_next_prompt_is_sent(world: &mut SessionsWorld) {
    let turn = world.runtime().start(&world.session, "two", None).await.unwrap();
    world.turns.push(turn);
}

#[when("the daemon is killed and the next one starts")]
async fn the_daemon_is_killed(world: &mut SessionsWorld) {
    let dead = world.runtime();
    world.runtime = Some(dead.next_life().await);
    world.dead = Some(dead);
}

#[when(expr = "its agent says {string}")]
async fn its_agent_says(world: &mut SessionsWorld, text: String) {
    assert!(world.runtime().say(&world.turns[0], &text).await);
}

#[when(expr = "its agent says {int} words and comes to its end while the reader pauses")]
async fn its_agent_says_much(world: &mut SessionsWorld, count: usize) {
    let runtime = world.runtime();
    for word in 0..count {
        assert!(runtime.say(&world.turns[0], &format!("{word} ")).await);
    }
    runtime.let_go(&world.turns[0]).await;
    freed(world, &runtime).await;
}

#[then("every turn that was started is the active one of its session")]
async fn every_turn_is_active(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    let mut lost = 0;
    for Begun { session, turn } in &world.begun {
        if runtime.active(session).await.as_ref() != Some(turn) {
            lost += 1;
        }
    }
    assert_eq!(lost, 0, "of {} turns", world.begun.len());
}

#[then("whoever attaches to it hears what it says")]
async fn whoever_attaches_hears(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    for Begun { turn, .. } in &world.begun {
        let mut reader = runtime.attach(turn).await.expect("its stream is there");
        assert!(runtime.say(turn, "hello").await, "its agent is heard");
        let heard = world.within("it is heard", reader.next()).await;
        assert_eq!(heard, Heard::Text("hello".to_owned()));
    }
}

#[then("one of both was refused every time, and was told of the other")]
async fn one_was_refused(world: &mut SessionsWorld) {
    for both in &world.both {
        match both {
            [Ok(won), Err(told)] | [Err(told), Ok(won)] => assert_eq!(won, told),
            other => panic!("{other:?}"),
        }
    }
}

#[then("both are the same turn every time")]
async fn both_are_the_same(world: &mut SessionsWorld) {
    for [first, second] in &world.both {
        assert_eq!(first.as_ref().unwrap(), second.as_ref().unwrap());
    }
}

#[then(expr = "every session has {int} turns")]
async fn every_session_has(world: &mut SessionsWorld, turns: usize) {
    for Begun { session, .. } in &world.begun {
        assert_eq!(world.runtime().shown(session).await.1, turns);
    }
}

#[then(expr = "every session has {int} turns and its new title")]
async fn every_session_has_both(world: &mut SessionsWorld, turns: usize) {
    for Begun { session, .. } in &world.begun {
        let shown = world.runtime().shown(session).await;
        assert_eq!(shown, ("its new title".to_owned(), turns));
    }
}

#[then(expr = "it has its new title and {int} turns")]
async fn it_has_its_turns(world: &mut SessionsWorld, turns: usize) {
    let shown = world.runtime().shown(&world.session).await;
    assert_eq!(shown, ("its new title".to_owned(), turns));
}

#[then(expr = "its readers hear that it was {string}")]
async fn its_readers_hear(world: &mut SessionsWorld, how: String) {
    let mut reader = world.runtime().attach(&world.turns[0]).await.unwrap();
    let heard = world.within("it is heard", reader.next()).await;
    assert_eq!(heard, Heard::End(how));
}

#[then("the next prompt starts a turn")]
async fn the_next_prompt_starts(world: &mut SessionsWorld) {
    let runtime = world.runtime();
    let turn = runtime.start(&world.session, "two", None).await;
    let turn = turn.expect("it is not refused");
    until(world, "it is at work", || runtime.at_work().contains(&turn)).await;
    assert_eq!(runtime.active(&world.session).await, Some(turn));
}

#[then("only the first agent is at work")]
async fn only_the_first(world: &mut SessionsWorld) {
    // Whoever begins too early does so by itself, and soon.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        world.runtime().at_work(),
        BTreeSet::from([world.turns[0].clone()])
    );
}

#[then("only the second agent is at work")]
async fn only_the_second(world: &mut SessionsWorld) {
    let (runtime, second) = (world.runtime(), BTreeSet::from([world.turns[1].clone()]));
    until(world, "the second is at work", || runtime.at_work() == second).await;
}

#[then(expr = "the reader hears {string}")]
async fn the_reader_hears(world: &mut SessionsWorld, text: String) {
    assert_eq!(hear(world).await, Heard::Text(text));
}

#[then(expr = "the reader hears that it was {string}")]
async fn the_reader_hears_the_end(world: &mut SessionsWorld, how: String) {
    assert_eq!(hear(world).await, Heard::End(how));
}

async fn hear(world: &mut SessionsWorld) -> Heard {
    let mut reader = world.reader.take().expect("a step before has attached it");
    let heard = world.within("it is heard", reader.next()).await;
    world.reader = Some(reader);
    heard
}

#[then(expr = "the reader hears all {int} words in their order")]
async fn the_reader_hears_all(world: &mut SessionsWorld, count: usize) {
    for word in 0..count {
        assert_eq!(hear(world).await, Heard::Text(format!("{word} ")));
    }
}

#[then("what the dead daemon says is heard by nobody")]
async fn the_dead_are_silent(world: &mut SessionsWorld) {
    let dead = world.dead.clone().expect("it was killed");
    assert!(!dead.say(&world.turns[0], "too late").await);
}
