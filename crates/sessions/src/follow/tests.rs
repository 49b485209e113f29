//! Readers of turns, on a log that the tests write themselves.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Bookmark, SqliteOptions, UnixMs};
use kernel::{CancellationToken, Clock, ManualClock};
use protocol::{AgentChoice, SessionId, Usage};
use tempfile::TempDir;

use super::*;
use crate::event::{all_to_log, to_log};
use crate::prompt::Prompt;
use crate::turn::{Turn, TurnRecord};

/// Generous for something that should take milliseconds, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A log with turns that no daemon runs.
pub(crate) struct Turns {
    pub(crate) log: Log,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) token: CancellationToken,
    _directory: TempDir,
}

impl Turns {
    pub(crate) fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("log.sqlite3");
        let clock = ManualClock::new();
        let as_clock = Arc::clone(&clock) as Arc<dyn Clock>;
        Self {
            log: Log::open_sqlite(&SqliteOptions { path }, as_clock).unwrap(),
            clock,
            token: CancellationToken::new(),
            _directory: directory,
        }
    }

    /// A queued turn, without any output.
    pub(crate) async fn queued(&self) -> TurnId {
        let turn = TurnId::generate();
        let accepted = TurnEvent::Accepted {
            v: 1,
            prompt: Prompt::default(),
            agent: AgentChoice::default(),
        };
        let mut written = Turn::new(turn, record());
        written
            .save(&self.log, &[to_log(&accepted).unwrap()])
            .await
            .unwrap();
        turn
    }

    /// A running turn with this many words.
    pub(crate) async fn running(&self, words: u64) -> TurnId {
        let turn = self.queued().await;
        self.add(turn, &[state(TurnState::Running)]).await;
        self.say(turn, words).await;
        turn
    }

    /// An ended turn with this many words.
    pub(crate) async fn done(&self, words: u64) -> TurnId {
        let turn = self.running(words).await;
        self.add(turn, &[state(TurnState::Done)]).await;
        turn
    }

    /// Writes some words to a turn, a few at a time, in two texts and a tool call.
    pub(crate) async fn say(&self, turn: TurnId, words: u64) {
        let words: Vec<_> = (0..words).map(word).collect();
        for some in words.chunks(7) {
            self.add(turn, some).await;
        }
    }

    pub(crate) async fn add(&self, turn: TurnId, events: &[TurnEvent]) {
        let mut found = store::turn(&self.log, turn).await.unwrap();
        let record = &mut found.record;
        for event in events {
            if let TurnEvent::State { state, .. } = event {
                record.state = *state;
                record.ended_at = state.is_terminal().then_some(UnixMs(1000));
            }
        }
        let events = all_to_log(events).unwrap();
        found.save(&self.log, &events).await.unwrap();
    }

    pub(crate) async fn follow(&self, turn: TurnId, from: FollowFrom) -> Reader {
        let follow = TurnFollow::open(&self.log, turn, from, &self.token.scope()).await;
        Reader {
            follow: follow.unwrap(),
            has: TurnTranscript::default(),
            at: match from {
                FollowFrom::After(place) => place.sequence.get(),
                _ => 0,
            },
            resyncs: 0,
        }
    }

    /// What a reader has after this many events from the start.
    pub(crate) async fn prefix(&self, turn: TurnId, events: u64) -> TurnTranscript {
        let stream = turn_stream(turn).unwrap();
        let page = self.log.read(&stream, Sequence::START, 10_000).await.unwrap();
        let mut has = TurnTranscript::default();
        let before = page
            .events
            .iter()
            .take_while(|event| event.sequence.get() <= events);
        before.for_each(|event| apply_stored(&mut has, event));
        has
    }

    pub(crate) async fn last(&self, turn: TurnId) -> u64 {
        let head = self.log.head(&turn_stream(turn).unwrap()).await.unwrap();
        head.unwrap().last_sequence.get()
    }
}

/// A reader that keeps everything it receives.
pub(crate) struct Reader {
    pub(crate) follow: TurnFollow,
    pub(crate) has: TurnTranscript,
    pub(crate) at: u64,
    pub(crate) resyncs: u64,
}

impl Reader {
    /// Takes the next item; returns how the turn ended if it was the end.
    pub(crate) async fn step(&mut self) -> Option<(u64, TurnState)> {
        let next = tokio::time::timeout(PATIENCE, self.follow.next()).await;
        match next.unwrap().unwrap().expect("an item") {
            FollowItem::Events(batch) => {
                for event in batch.events() {
                    self.at += 1;
                    assert_eq!(event.sequence.get(), self.at, "nothing is missing or comes twice");
                    apply_stored(&mut self.has, event);
                }
                None
            }
            FollowItem::Resync { after, snapshot } => {
                (self.has, self.at) = (*snapshot, after.get());
                self.resyncs += 1;
                None
            }
            FollowItem::End { sequence, state } => Some((sequence.get(), state)),
        }
    }

    pub(crate) async fn up_to(&mut self, place: u64) {
        while self.at < place {
            assert_eq!(self.step().await, None);
        }
    }

    pub(crate) async fn read_to_the_end(&mut self) -> (u64, TurnState) {
        let end = loop {
            if let Some(end) = self.step().await {
                break end;
            }
        };
        assert!(
            self.follow.next().await.unwrap().is_none(),
            "nothing comes after the end"
        );
        end
    }
}

fn record() -> TurnRecord {
    TurnRecord {
        session: SessionId::generate(),
        number: 1,
        previous: None,
        prompt: Prompt::default(),
        agent: AgentChoice::default(),
        by: "test".into(),
        accepted_at: UnixMs(0),
        state: TurnState::Queued,
        started_at: None,
        ended_at: None,
        owner: None,
        plan: None,
        usage: Usage::default(),
        error: None,
        finish: None,
        finish_job: None,
        transcript: None,
    }
}

fn state(state: TurnState) -> TurnEvent {
    TurnEvent::State { state, error: None }
}

fn word(number: u64) -> TurnEvent {
    let delta = format!("{number} ");
    match number {
        0 => TurnEvent::ToolCall {
            item: 0,
            call: String::new(),
            tool: "shell".to_owned(),
        },
        _ if number.is_multiple_of(3) => TurnEvent::ToolOutput { item: 0, delta },
        _ => TurnEvent::Text {
            item: number % 2 + 1,
            delta,
        },
    }
}

#[tokio::test]
async fn readers_that_come_and_go_all_have_the_same_in_the_end() {
    let turns = Turns::open();
    let turn = turns.running(30).await;
    let mut early = turns.follow(turn, FollowFrom::Start).await;
    early.up_to(20).await;
    turns.say(turn, 200).await;
    let mut late = turns.follow(turn, FollowFrom::Start).await;
    late.up_to(50).await;
    // It leaves in the middle, and comes back to the same position.
    let mut again = turns
        .follow(turn, FollowFrom::After(Sequence::from_u64(late.at).into()))
        .await;
    again.has = late.has;
    turns.add(turn, &[state(TurnState::Failed)]).await;
    let last = turns.last(turn).await;
    for reader in [&mut early, &mut again] {
        assert_eq!(reader.read_to_the_end().await, (last, TurnState::Failed));
        assert_eq!((reader.at, reader.resyncs), (last, 0));
        assert_eq!(reader.has, turns.prefix(turn, last).await);
    }
}

#[tokio::test]
async fn a_turn_that_waits_is_followed_until_it_has_run() {
    let turns = Turns::open();
    let turn = turns.queued().await;
    let mut reader = turns.follow(turn, FollowFrom::Start).await;
    reader.up_to(1).await;
    let follows = tokio::spawn(async move { (reader.read_to_the_end().await, reader.has) });
    turns.add(turn, &[state(TurnState::Running)]).await;
    turns.say(turn, 10).await;
    turns.add(turn, &[state(TurnState::Cancelled)]).await;
    let expected = ((13, TurnState::Cancelled), turns.prefix(turn, 13).await);
    assert_eq!(follows.await.unwrap(), expected);
}

#[tokio::test]
async fn a_reader_begins_where_it_wants_to() {
    let turns = Turns::open();
    let turn = turns.done(10).await;
    let after = |place| FollowFrom::After(Sequence::from_u64(place).into());
    // Thirteen events: accepted, running, ten words, done.
    for (from, first) in [
        (FollowFrom::Start, Some(1)),
        (after(0), Some(1)),
        (after(5), Some(6)),
        (after(12), Some(13)),
        (after(13), None),
        (FollowFrom::Last(4), Some(10)),
        (FollowFrom::Last(0), None),
        (FollowFrom::Last(99), Some(1)),
    ] {
        let mut reader = turns.follow(turn, from).await;
        let mut seen = Vec::new();
        loop {
            match reader.follow.next().await.unwrap().unwrap() {
                FollowItem::Events(batch) => {
                    seen.extend(batch.events().iter().map(|event| event.sequence.get()));
                }
                FollowItem::End { sequence, state } => {
                    assert_eq!((sequence.get(), state), (13, TurnState::Done));
                    break;
                }
                item @ FollowItem::Resync { .. } => panic!("{item:?}"),
            }
        }
        let expected: Vec<u64> = first.map_or(Vec::new(), |first| (first..=13).collect());
        assert_eq!(seen, expected, "{from:?}");
    }
}

#[tokio::test]
async fn a_place_beyond_the_end_is_answered_with_a_snapshot() {
    let turns = Turns::open();
    let turn = turns.running(20).await;
    let beyond = FollowFrom::After(Sequence::from_u64(1_000_000).into());
    let mut reader = turns.follow(turn, beyond).await;
    assert_eq!(reader.step().await, None);
    assert_eq!((reader.at, reader.resyncs), (22, 1));
    assert_eq!(reader.has, turns.prefix(turn, 22).await);
    turns.say(turn, 5).await;
    turns.add(turn, &[state(TurnState::Done)]).await;
    assert_eq!(reader.read_to_the_end().await, (28, TurnState::Done));
    assert_eq!(reader.has, turns.prefix(turn, 28).await);
    // The same for a turn that has ended.
    let mut reader = turns.follow(turn, beyond).await;
    assert_eq!(reader.read_to_the_end().await, (28, TurnState::Done));
    assert_eq!((reader.resyncs, reader.has), (1, turns.prefix(turn, 28).await));
}

/// An event that a reader has seen was lost, and a different one has its number when the reader comes back.
#[tokio::test]
async fn a_place_that_something_else_has_by_now_is_answered_with_a_snapshot() {
    let turns = Turns::open();
    for is_over in [false, true] {
        let turn = turns.running(20).await;
        if is_over {
            turns.add(turn, &[state(TurnState::Done)]).await;
        }
        let last = turns.last(turn).await;
        let stream = turn_stream(turn).unwrap();
        let page = turns.log.read(&stream, Sequence::START, 10_000).await.unwrap();
        for place in [5, last] {
            let seen = Bookmark::from(&page.events[usize::try_from(place - 1).unwrap()]);
            let other = Bookmark {
                at_ms: seen.at_ms.map(|at_ms| at_ms - 1),
                ..seen
            };
            let mut reader = turns.follow(turn, FollowFrom::After(other)).await;
            assert_eq!(reader.step().await, None);
            assert_eq!((reader.at, reader.resyncs), (last, 1), "{place} {is_over}");
            assert_eq!(reader.has, turns.prefix(turn, last).await);
        }
        let seen = Bookmark::from(&page.events[4]);
        let mut reader = turns.follow(turn, FollowFrom::After(seen)).await;
        assert_eq!((reader.step().await, reader.resyncs), (None, 0));
    }
}

#[tokio::test]
async fn a_reader_is_let_go_when_there_is_nothing_to_follow() {
    let turns = Turns::open();
    let missing = TurnId::generate();
    let refused = TurnFollow::open(&turns.log, missing, FollowFrom::Start, &turns.token.scope()).await;
    assert!(matches!(refused, Err(SessionError::TurnNotFound(turn)) if turn == missing));

    let turn = turns.running(3).await;
    let mut of_removed = turns.follow(turn, FollowFrom::Start).await;
    of_removed.up_to(5).await;
    let stream = turn_stream(turn).unwrap();
    let version = turns.log.head(&stream).await.unwrap().unwrap().version;
    turns.log.remove(vec![(stream, version)]).await.unwrap();
    assert!(matches!(of_removed.follow.next().await, Err(FollowEnd::Removed)));

    let turn = turns.running(3).await;
    let mut of_cancelled = turns.follow(turn, FollowFrom::Start).await;
    of_cancelled.up_to(5).await;
    turns.token.cancel(Cause::new("the test", "it is over"));
    assert!(matches!(
        of_cancelled.follow.next().await,
        Err(FollowEnd::Cancelled(_))
    ));
}
