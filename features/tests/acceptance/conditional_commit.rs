//! The steps of `conditional_commit.feature`.

use std::{fmt, sync::Arc};

use cucumber::{World, given, then, when};
use eventlog::{Commit, CommitError, Committed, Head, Log, StoredHead, StreamId, Version, Write};

use crate::{
    engines::{Database, postgres_is_here},
    runner::{Tally, Which, run},
};

#[test]
fn conditional_commit() {
    let tally = run::<SessionWorld>("conditional_commit.feature", Which::All, |world| {
        world.saving = Saving::Ours
    });
    assert_eq!(
        tally,
        Tally {
            passed: 3 * engines(),
            failed: 0
        }
    );
}

#[test]
fn the_read_then_write_of_the_report_is_caught() {
    let tally = run::<SessionWorld>("conditional_commit.feature", Which::WhatCatches, |world| {
        world.saving = Saving::ReadThenWrite
    });
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: 2 * engines()
        }
    );
}

fn engines() -> usize {
    if postgres_is_here() { 2 } else { 1 }
}

/// How a reader writes what it has decided.
#[derive(Clone, Copy, Debug, Default)]
enum Saving {
    /// It names the version that it saw.
    #[default]
    Ours,
    /// As in the report: it looks the session up again to be able to write, and does not look at what it finds.
    ReadThenWrite,
}

/// What the head of a session holds here.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Session {
    turn: String,
    messages: u64,
}

impl Session {
    fn head(&self) -> Head {
        let body = format!("{}\n{}", self.turn, self.messages);
        Head {
            kind: Arc::from("session"),
            status: Arc::from(if self.turn.is_empty() { "idle" } else { "busy" }),
            body: body.as_bytes().into(),
            blobs: Vec::new(),
        }
    }

    fn of(stored: &StoredHead) -> Self {
        let body = String::from_utf8(stored.head.body.to_vec()).unwrap();
        let (turn, messages) = body.split_once('\n').unwrap();
        Self {
            turn: turn.to_owned(),
            messages: messages.parse().unwrap(),
        }
    }
}

#[derive(Default, World)]
struct SessionWorld {
    saving: Saving,
    database: Option<Database>,
    /// What the reader saw when it decided.
    seen: Option<StoredHead>,
    outcome: Option<Result<Vec<Committed>, CommitError>>,
}

impl fmt::Debug for SessionWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionWorld")
            .field("saving", &self.saving)
            .finish_non_exhaustive()
    }
}

fn stream() -> StreamId {
    StreamId::new("session/1").unwrap()
}

async fn read(log: &Log) -> StoredHead {
    log.head(&stream()).await.unwrap().expect("there is a session")
}

async fn write(log: &Log, expected: Version, session: &Session) -> Result<Vec<Committed>, CommitError> {
    let write = Write {
        stream: stream(),
        expected,
        head: Some(session.head()),
        events: Vec::new(),
    };
    log.commit(Commit::one(write)).await
}

impl SessionWorld {
    fn database(&self) -> &Database {
        self.database.as_ref().expect("a step before has opened a log")
    }

    async fn open(&mut self, engine: &str, session: Session) {
        let database = Database::open(engine).await;
        write(&database.log, Version::NONE, &session).await.unwrap();
        self.database = Some(database);
    }

    /// Another process moves the session on.
    async fn meanwhile(&self, change: impl FnOnce(&mut Session)) {
        let stored = read(&self.database().other).await;
        let mut session = Session::of(&stored);
        change(&mut session);
        write(&self.database().other, stored.version, &session)
            .await
            .unwrap();
    }

    /// The reader carries out what it decided on what it saw.
    async fn carry_out(&mut self, change: impl FnOnce(&mut Session)) {
        let seen = self.seen.clone().expect("the reader has looked");
        let mut session = Session::of(&seen);
        change(&mut session);
        let log = &self.database().log;
        let expected = match self.saving {
            Saving::Ours => seen.version,
            Saving::ReadThenWrite => read(log).await.version,
        };
        self.outcome = Some(write(log, expected, &session).await);
    }
}

#[given(expr = "a log on {word} with a session whose turn looks stale")]
async fn a_stale_turn(world: &mut SessionWorld, engine: String) {
    world
        .open(
            &engine,
            Session {
                turn: "turn-1".to_owned(),
                messages: 0,
            },
        )
        .await;
}

#[given(expr = "a log on {word} with a session of {int} messages")]
async fn a_session(world: &mut SessionWorld, engine: String, messages: u64) {
    world
        .open(
            &engine,
            Session {
                turn: String::new(),
                messages,
            },
        )
        .await;
}

#[given("a reader that has decided to clear it and is held before its write")]
#[given("a reader that holds a copy of it")]
async fn a_reader(world: &mut SessionWorld) {
    world.seen = Some(read(&world.database().log).await);
}

#[when("another process starts a new turn")]
async fn a_new_turn(world: &mut SessionWorld) {
    world
        .meanwhile(|session| session.turn = "turn-2".to_owned())
        .await;
}

#[when(expr = "another process adds {int} messages")]
async fn more_messages(world: &mut SessionWorld, count: u64) {
    world.meanwhile(|session| session.messages += count).await;
}

#[when("the reader goes on with its write")]
async fn the_reader_clears(world: &mut SessionWorld) {
    world.carry_out(|session| session.turn.clear()).await;
}

#[when("the reader saves its copy with one more message")]
async fn the_reader_saves(world: &mut SessionWorld) {
    world.carry_out(|session| session.messages += 1).await;
}

#[then("the session points at the new turn")]
async fn points_at_the_new_turn(world: &mut SessionWorld) {
    assert_eq!(Session::of(&read(&world.database().log).await).turn, "turn-2");
}

#[then("the session points at no turn")]
async fn points_at_no_turn(world: &mut SessionWorld) {
    assert_eq!(Session::of(&read(&world.database().other).await).turn, "");
}

#[then("the reader has learnt of the new turn")]
async fn has_learnt(world: &mut SessionWorld) {
    let Some(Err(CommitError::Conflict {
        actual: Some(actual), ..
    })) = &world.outcome
    else {
        panic!("the write was not refused: {:?}", world.outcome);
    };
    assert_eq!(Session::of(actual).turn, "turn-2");
}

#[then(expr = "the session has {int} messages")]
async fn has_messages(world: &mut SessionWorld, count: u64) {
    assert_eq!(Session::of(&read(&world.database().log).await).messages, count);
}
