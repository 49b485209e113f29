//! The algorithms of the reports: sessions as rows that are read, changed and written back, streams in a table in memory.
//!
//! Rows are heads in the log of the scenario, and no write names the version that it was decided on. Where the reports'
//! programs wait (a file is written, a lock is taken), these wait too, so that a scenario can hold them there.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use eventlog::{Commit, CommitError, Head, Log, StreamId, Version, Write};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::sessions_runtime::{Heard, Reader, Runtime};

/// What is wrong with it. Each is one of the reports; a scenario is run on the one that it is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Stale is decided under one lock, and written after it was let go.
    DecideThenWrite,
    /// The repair that the report proposes: before it is written, it is looked again, under the lock of the session. The
    /// turn is still named before its stream is born.
    LookAgain,
    /// The repair that was built: what is younger than 30 seconds is not stale.
    ThirtySeconds,
    /// A session is seen to be free, and then taken.
    CheckThenStart,
    /// A copy that has no turns in it is saved as the whole.
    PartialSave,
    /// A stop leaves the session taken.
    StopKeepsTheClaim,
    /// A stop frees the session while the agent is still at work.
    StopFreesAtOnce,
    /// A reader has a queue; what does not fit is dropped.
    DropWhenFull,
    /// A stream whose producer is gone is not ended.
    NoEnd,
}

/// How often whoever starts a turn waits between naming its stream and the stream's birth.
const PREPARATIONS: usize = 8;
/// How much fits into the queue of a reader.
const QUEUE: usize = 64;
/// What is younger is not stale, by the clock of [`Fault::ThirtySeconds`].
const YOUNG: Duration = Duration::from_secs(30);

pub(crate) struct Faulty {
    fault: Fault,
    log: Log,
    /// Guards the streams that are there; held to look and to write.
    streams: Mutex<BTreeMap<String, Stream>>,
    began: Instant,
}

/// A stream in memory.
#[derive(Default)]
struct Stream {
    said: Vec<String>,
    end: Option<String>,
    is_at_work: bool,
    readers: Vec<Arc<Queue>>,
}

/// The queue of one reader.
#[derive(Default)]
struct Queue {
    /// Guards what waits; held to put and to take.
    waiting: Mutex<VecDeque<Heard>>,
    put: Notify,
}

impl Queue {
    fn put(&self, heard: Heard, is_bounded: bool) {
        let mut waiting = self.waiting.lock().unwrap();
        // The end always fits: 'done' was said in the report, and a third of the words was not.
        if !is_bounded || waiting.len() < QUEUE || matches!(heard, Heard::End(_)) {
            waiting.push_back(heard);
        }
        drop(waiting);
        self.put.notify_one();
    }
}

impl Faulty {
    pub(crate) fn new(fault: Fault, log: &Log) -> Self {
        Self {
            fault,
            log: log.clone(),
            streams: Mutex::default(),
            began: Instant::now(),
        }
    }

    fn stream(session: &str) -> StreamId {
        StreamId::new(&format!("row/{session}")).unwrap()
    }

    async fn load(&self, session: &str) -> Value {
        let stored = self.log.head(&Self::stream(session)).await.unwrap().unwrap();
        serde_json::from_slice(&stored.head.body).unwrap()
    }

    /// The fault of all of them: whatever there is, is written over.
    async fn save(&self, session: &str, row: &Value) {
        loop {
            let stored = self.log.head(&Self::stream(session)).await.unwrap();
            let expected = stored.map_or(Version::NONE, |stored| stored.version);
            let write = Write {
                stream: Self::stream(session),
                expected,
                head: Some(Head {
                    kind: "row".into(),
                    status: "there".into(),
                    body: row.to_string().as_bytes().into(),
                    blobs: Vec::new(),
                }),
                events: Vec::new(),
            };
            match self.log.commit(Commit::one(write)).await {
                Ok(_) => return,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn is_registered(&self, turn: &str) -> bool {
        let streams = self.streams.lock().unwrap();
        streams.get(turn).is_some_and(|stream| stream.end.is_none())
    }

    fn looks_stale(&self, row: &Value) -> bool {
        let Some(turn) = row["active"].as_str() else {
            return false;
        };
        let is_young = self.fault == Fault::ThirtySeconds && self.began.elapsed() < YOUNG;
        !self.is_registered(turn) && !is_young
    }

    /// Names the turn in the row, and gives birth to its stream.
    async fn begin(&self, session: &str, mut row: Value, key: Option<&str>) -> String {
        let turn = protocol::TurnId::generate().to_string();
        row["active"] = turn.as_str().into();
        row["turns"].as_array_mut().unwrap().push(turn.as_str().into());
        if let Some(key) = key {
            row["keys"][key] = turn.as_str().into();
        }
        let is_born_late = matches!(self.fault, Fault::DecideThenWrite | Fault::LookAgain);
        if !is_born_late {
            self.give_birth(&turn);
        }
        self.save(session, &row).await;
        if is_born_late {
            // The agent is made ready first.
            for _ in 0..PREPARATIONS {
                tokio::task::yield_now().await;
            }
            self.give_birth(&turn);
        }
        turn
    }

    fn give_birth(&self, turn: &str) {
        let stream = Stream {
            is_at_work: true,
            ..Stream::default()
        };
        self.streams.lock().unwrap().insert(turn.to_owned(), stream);
    }

    async fn free(&self, session: &str) {
        let mut row = self.load(session).await;
        row["active"] = Value::Null;
        self.save(session, &row).await;
    }

    fn end(&self, turn: &str, how: &str) {
        let mut streams = self.streams.lock().unwrap();
        if let Some(stream) = streams.get_mut(turn) {
            stream.end = Some(how.to_owned());
            for reader in &stream.readers {
                reader.put(Heard::End(how.to_owned()), false);
            }
        }
    }

    async fn session_of(&self, turn: &str) -> Option<String> {
        let query = eventlog::HeadsQuery {
            kind: "row".into(),
            status: None,
            order: eventlog::HeadsOrder::OldestFirst,
            after: None,
            limit: 1000,
        };
        let rows = self.log.heads(query).await.unwrap();
        rows.iter().find_map(|stored| {
            let row: Value = serde_json::from_slice(&stored.head.body).unwrap();
            let is_its = row["active"].as_str() == Some(turn);
            is_its.then(|| stored.stream.as_str().trim_start_matches("row/").to_owned())
        })
    }
}

#[async_trait(?Send)]
impl Runtime for Faulty {
    async fn create(&self) -> String {
        let session = protocol::SessionId::generate().to_string();
        let row = json!({ "title": "a session", "active": null, "turns": [], "keys": {} });
        self.save(&session, &row).await;
        session
    }

    async fn start(&self, session: &str, _: &str, key: Option<&str>) -> Result<String, String> {
        let row = self.load(session).await;
        if let Some(before) = key.and_then(|key| row["keys"][key].as_str()) {
            return Ok(before.to_owned());
        }
        match row["active"].as_str() {
            Some(active) if !self.looks_stale(&row) => Err(active.to_owned()),
            _ => Ok(self.begin(session, row, key).await),
        }
    }

    async fn look_and_clear(&self, session: &str) {
        let mut row = self.load(session).await;
        if !self.looks_stale(&row) {
            return;
        }
        // Here the lock of the streams is let go, and that of the session is taken.
        tokio::task::yield_now().await;
        if self.fault != Fault::DecideThenWrite {
            let again = self.load(session).await;
            if again["active"] != row["active"] || !self.looks_stale(&again) {
                return;
            }
            row = again;
        }
        row["active"] = Value::Null;
        self.save(session, &row).await;
    }

    async fn leave_behind(&self, session: &str) -> String {
        let mut row = self.load(session).await;
        let turn = protocol::TurnId::generate().to_string();
        row["active"] = turn.as_str().into();
        self.save(session, &row).await;
        turn
    }

    async fn active(&self, session: &str) -> Option<String> {
        self.load(session).await["active"].as_str().map(str::to_owned)
    }

    async fn stop(&self, session: &str) {
        let Some(turn) = self.active(session).await else {
            return;
        };
        match self.fault {
            Fault::StopFreesAtOnce => {
                self.free(session).await;
                self.end(&turn, "cancelled");
            }
            _ => {
                let mut row = self.load(session).await;
                row["stopped"] = true.into();
                self.save(session, &row).await;
            }
        }
    }

    async fn rename(&self, session: &str, title: &str) {
        let mut row = self.load(session).await;
        if self.fault == Fault::PartialSave {
            // What a list shows has no turns in it, and the copy does not know that it is not the whole.
            row["turns"] = json!([]);
        }
        row["title"] = title.into();
        self.save(session, &row).await;
    }

    async fn shown(&self, session: &str) -> (String, usize) {
        let row = self.load(session).await;
        let turns = row["turns"].as_array().unwrap().len();
        (row["title"].as_str().unwrap().to_owned(), turns)
    }

    async fn attach(&self, turn: &str) -> Option<Box<dyn Reader>> {
        let mut streams = self.streams.lock().unwrap();
        let stream = streams.get_mut(turn)?;
        let queue = Arc::new(Queue::default());
        for text in &stream.said {
            queue.put(Heard::Text(text.clone()), false);
        }
        stream.readers.push(Arc::clone(&queue));
        Some(Box::new(Queued(queue)))
    }

    async fn say(&self, turn: &str, text: &str) -> bool {
        // As in the report: what the session does not name is not delivered to anybody.
        if self.session_of(turn).await.is_none() {
            return false;
        }
        let mut streams = self.streams.lock().unwrap();
        let Some(stream) = streams.get_mut(turn) else {
            return false;
        };
        stream.said.push(text.to_owned());
        for reader in &stream.readers {
            reader.put(Heard::Text(text.to_owned()), self.fault == Fault::DropWhenFull);
        }
        true
    }

    async fn let_go(&self, turn: &str) {
        if let Some(stream) = self.streams.lock().unwrap().get_mut(turn) {
            stream.is_at_work = false;
        }
        let Some(session) = self.session_of(turn).await else {
            return;
        };
        let is_stopped = self.load(&session).await["stopped"].as_bool() == Some(true);
        if !(is_stopped && self.fault == Fault::StopKeepsTheClaim) {
            self.free(&session).await;
        }
        self.end(turn, if is_stopped { "cancelled" } else { "done" });
    }

    fn at_work(&self) -> BTreeSet<String> {
        let streams = self.streams.lock().unwrap();
        let at_work = streams.iter().filter(|(_, stream)| stream.is_at_work);
        at_work.map(|(turn, _)| turn.clone()).collect()
    }

    async fn next_life(&self) -> Arc<dyn Runtime> {
        if self.fault != Fault::NoEnd {
            let open: Vec<String> = self.streams.lock().unwrap().keys().cloned().collect();
            for turn in open {
                self.end(&turn, "interrupted");
            }
        }
        Arc::new(Self::new(self.fault, &self.log))
    }
}

/// A reader with a queue of its own.
struct Queued(Arc<Queue>);

#[async_trait(?Send)]
impl Reader for Queued {
    async fn next(&mut self) -> Heard {
        loop {
            let put = self.0.put.notified();
            if let Some(heard) = self.0.waiting.lock().unwrap().pop_front() {
                return heard;
            }
            put.await;
        }
    }
}
