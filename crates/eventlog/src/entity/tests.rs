use std::cell::Cell;

use kernel::SystemClock;
use serde::{Deserialize, Serialize, Serializer};
use tempfile::TempDir;

use super::*;
use crate::{sqlite::SqliteOptions, store::Health};

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
struct Note {
    #[serde(serialize_with = "unless_bad")]
    text: String,
}

fn unless_bad<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match text {
        "bad" => Err(serde::ser::Error::custom("this can't be encoded")),
        text => serializer.serialize_str(text),
    }
}

impl EntityEvent for Note {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        NewEvent::json("written", self)
    }
}

impl EntityRecord for Note {
    const KIND: &'static str = "note";
    type Id = u32;
    type Event = Note;

    fn status(&self) -> Arc<str> {
        "open".into()
    }
}

#[derive(Debug, thiserror::Error)]
enum NoteError {
    #[error("there is no such note")]
    Absent,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

fn note(text: &str) -> Note {
    let text = text.to_owned();
    Note { text }
}

fn open() -> (Log, TempDir) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap();
    (log, directory)
}

async fn current(log: &Log) -> Option<Entity<Note>> {
    Entity::read(log, 1).await.unwrap()
}

#[tokio::test]
async fn an_update_is_decided_again_on_the_head_that_conflicted() {
    let (log, _directory) = open();
    let mut other = Entity::new(1, note("first"));
    other.save(&log, &[note("first")]).await.unwrap();
    let stale = other.clone();
    other.record = note("second");
    other.save(&log, &[]).await.unwrap();

    let seen = Cell::new(Vec::new());
    let updated = Entity::update_held(&log, 1, Some(stale), 2, |held| {
        let held = held.ok_or(NoteError::Absent)?;
        seen.set([seen.take(), vec![held.record.text.clone()]].concat());
        Ok::<_, NoteError>(Some(Change::new(note("third")).event(note("third"))))
    })
    .await
    .unwrap();
    assert_eq!(seen.take(), ["first", "second"]);
    let Updated::Written(written) = updated else {
        panic!("{updated:?}");
    };
    assert_eq!(Some(&written), current(&log).await.as_ref());
    assert_eq!((written.last_sequence.get(), &*written.record.text), (2, "third"));
}

#[tokio::test]
async fn an_update_gives_up_after_its_tries_with_the_conflict() {
    let (log, _directory) = open();
    Entity::new(1, note("theirs")).save(&log, &[]).await.unwrap();
    let (mut retries, mut tried) = (ConflictRetries::new(3), 0);
    let conflict = loop {
        // Each decision is made too late: it claims that there is no such note.
        let saved = Entity::new(1, note("ours")).save(&log, &[]).await;
        tried += 1;
        if !retries.again(&saved) {
            break saved;
        }
    };
    assert!(matches!(conflict, Err(CommitError::Conflict { .. })));
    assert_eq!(tried, 3);
    let refused = Err::<(), _>(CommitError::TooLarge { bytes: 1 });
    assert!(!ConflictRetries::new(3).again(&refused));
    assert!(!ConflictRetries::new(3).again(&Ok::<(), CommitError>(())));

    let refused = Entity::update_held(&log, 1, None, 1, |_| {
        Ok::<_, NoteError>(Some(Change::new(note("ours"))))
    });
    let refused = refused.await;
    assert!(matches!(
        refused,
        Err(NoteError::Commit(CommitError::Conflict { .. }))
    ));
    assert_eq!(current(&log).await.unwrap().record, note("theirs"));
}

#[tokio::test]
async fn a_conflict_in_another_stream_is_decided_again_too() {
    let (log, _directory) = open();
    Entity::new(2, note("taken")).save(&log, &[]).await.unwrap();
    let mut other = 2;
    let updated = Entity::update(&log, 1, 2, |held| {
        assert!(held.is_none());
        let also = Entity::new(other, note("free")).write(&[])?;
        other += 1;
        let change = Change::new(note("first"));
        Ok::<_, NoteError>(Some(Change {
            also: vec![also],
            ..change
        }))
    });
    assert!(matches!(updated.await, Ok(Updated::Written(_))));
    let texts = Entity::<Note>::all(&log, Some("open")).await.unwrap();
    let texts: Vec<_> = texts.iter().map(|note| &*note.record.text).collect();
    assert_eq!(texts, ["first", "taken", "free"]);
}

#[tokio::test]
async fn what_cannot_be_encoded_is_not_stored() {
    let (log, _directory) = open();
    let mut kept = Entity::new(1, note("kept"));
    kept.save(&log, &[]).await.unwrap();
    let before = current(&log).await;
    let events = [(note("bad"), note("fine")), (note("fine"), note("bad"))];
    for (record, event) in events {
        let mut changed = kept.clone();
        changed.record = record;
        let refused = changed.save(&log, &[event]).await;
        assert!(matches!(refused, Err(CommitError::NotStorable(_))), "{refused:?}");
    }
    assert_eq!(current(&log).await, before);
    assert!(matches!(log.health(), Health::Writable));
}

#[tokio::test]
async fn absent_unreadable_and_kept_are_told_apart() {
    let (log, _directory) = open();
    assert_eq!(current(&log).await, None);
    let absent = Entity::update(&log, 1, 2, |held: Option<&Entity<Note>>| match held {
        None => Err(NoteError::Absent),
        Some(_) => Ok(None),
    });
    assert!(matches!(absent.await, Err(NoteError::Absent)));

    for (stream, body) in [("note/1", &7), ("note/one", &8)] {
        let write = Write {
            stream: StreamId::new(stream).unwrap(),
            expected: Version::NONE,
            head: Some(Head::json("note", "open", body).unwrap()),
            events: Vec::new(),
        };
        log.commit(Commit::one(write)).await.unwrap();
    }
    let unreadable = Entity::update(&log, 1, 2, |_| Ok::<Option<Change<Note>>, NoteError>(None));
    let unreadable = unreadable.await;
    let Err(NoteError::Read(ReadError::Unreadable(unreadable))) = unreadable else {
        panic!("{unreadable:?}");
    };
    assert_eq!(unreadable.stream.as_str(), "note/1");
    assert_eq!(Entity::<Note>::all(&log, None).await.unwrap(), []);
    let quarantined = log.quarantined();
    let streams: Vec<_> = quarantined.iter().map(|head| &*head.stream).collect();
    assert_eq!(streams, ["note/1", "note/one"]);
    for stored in log.all_heads("note", None).await.unwrap() {
        assert!(Entity::<Note>::problem(&stored.stream, &stored.head).is_some());
    }

    let mut fine = Entity::new(2, note("fine"));
    fine.save(&log, &[]).await.unwrap();
    let kept = Entity::update(&log, 2, 2, |_| Ok::<Option<Change<Note>>, NoteError>(None));
    assert!(matches!(kept.await, Ok(Updated::Kept(Some(entity))) if entity == fine));
}
