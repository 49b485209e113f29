//! The log against a model of it in memory: whatever is done to both, they say the same.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use eventlog::{
    Commit, CommitError, HeadsOrder, HeadsQuery, Lease, LeaseError, Log, RetentionPolicy, Sequence,
    StoredHead, TailItem, Trimmed, Version, Write,
};
use kernel::{CancellationToken, Cause};
use proptest::prelude::*;

use crate::{
    engines::{self, Engine},
    support::{event, head, stream, text},
};

const STREAMS: usize = 4;
const KEYS: usize = 2;
/// Time moves in steps that are long beside what a test takes, where the clock cannot be stopped.
const TICK: Duration = Duration::from_secs(60);

/// Something to do, through one of the two handles.
#[derive(Clone, Debug)]
struct Step {
    handle: usize,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Commit {
        writes: Vec<(usize, Seen, Option<u8>, usize)>,
        under: Option<usize>,
    },
    Read {
        stream: usize,
        after: u64,
        limit: u32,
    },
    Remove {
        streams: Vec<(usize, Seen)>,
    },
    Heads {
        status: Option<u8>,
        order: HeadsOrder,
        after: Option<usize>,
        limit: u32,
    },
    Lease {
        key: usize,
        owner: usize,
        ticks: u32,
    },
    Renew {
        lease: usize,
        ticks: u32,
    },
    Release {
        lease: usize,
    },
    Pass {
        ticks: u32,
    },
    Trim {
        max_bytes: u64,
    },
}

/// Which version a write names.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Current,
    None,
    Earlier,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seen = prop_oneof![8 => Just(Seen::Current), 1 => Just(Seen::None), 1 => Just(Seen::Earlier)];
    let status = prop::option::weighted(0.8, 0..3_u8);
    let removed = (0..STREAMS, seen.clone());
    let write = (0..STREAMS, seen, status, 0..4_usize);
    let order = prop_oneof![Just(HeadsOrder::OldestFirst), Just(HeadsOrder::NewestFirst)];
    let action = prop_oneof![
        12 => (prop::collection::vec(write, 1..4), prop::option::weighted(0.3, 0..4_usize))
            .prop_map(|(writes, under)| Action::Commit { writes, under }),
        3 => (0..STREAMS, 0..12_u64, 0..6_u32)
            .prop_map(|(stream, after, limit)| Action::Read { stream, after, limit }),
        2 => prop::collection::vec(removed, 1..3).prop_map(|streams| Action::Remove { streams }),
        2 => (prop::option::of(0..3_u8), order, prop::option::of(0..STREAMS), 1..5_u32)
            .prop_map(|(status, order, after, limit)| Action::Heads { status, order, after, limit }),
        4 => (0..KEYS, 0..2_usize, 1..4_u32)
            .prop_map(|(key, owner, ticks)| Action::Lease { key, owner, ticks }),
        4 => (0..4_usize, 1..4_u32).prop_map(|(lease, ticks)| Action::Renew { lease, ticks }),
        1 => (0..4_usize).prop_map(|lease| Action::Release { lease }),
        4 => (1..3_u32).prop_map(|ticks| Action::Pass { ticks }),
        1 => (0..30_u64).prop_map(|max_bytes| Action::Trim { max_bytes }),
    ];
    let step = (0..2_usize, action).prop_map(|(handle, action)| Step { handle, action });
    prop::collection::vec(step, 1..60)
}

/// What the log should be.
#[derive(Debug, Default)]
struct Model {
    streams: BTreeMap<usize, ModelStream>,
    /// The last version of each stream that was removed.
    removed: BTreeMap<usize, Version>,
    /// The furthest that a stream of each name ever was.
    furthest: BTreeMap<usize, u64>,
    leases: BTreeMap<usize, ModelLease>,
    /// The leases that were given, in order, whether they are still good or not.
    given: Vec<Lease>,
    now: u32,
    /// The highest version or token that was seen.
    highest: Version,
    events: u64,
}

#[derive(Debug, Default)]
struct ModelStream {
    version: Version,
    earlier: Version,
    status: u8,
    first: u64,
    /// The events from `first` on.
    events: Vec<String>,
}

#[derive(Debug)]
struct ModelLease {
    token: Version,
    expires: u32,
}

impl ModelStream {
    fn last(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }
}

fn name(index: usize) -> String {
    format!("stream/{index}")
}

fn status(number: u8) -> String {
    format!("status{number}")
}

impl Model {
    fn stored(&self, index: usize) -> Option<StoredHead> {
        let found = self.streams.get(&index)?;
        Some(StoredHead {
            stream: stream(&name(index)),
            version: found.version,
            last_sequence: Sequence::from_u64(found.last()),
            head: head(&status(found.status), &status(found.status)),
        })
    }

    /// One of the leases that were given last.
    fn given(&self, back: usize) -> Option<Lease> {
        self.given.iter().rev().nth(back).cloned()
    }

    fn is_held(&self, lease: &Lease) -> bool {
        self.leases
            .values()
            .any(|held| held.token == lease.token && held.expires > self.now)
    }

    fn saw(&mut self, version: Version) {
        assert!(
            version > self.highest,
            "{version} is not new after {}",
            self.highest
        );
        self.highest = version;
    }

    async fn step(&mut self, engine: &Engine, step: Step) {
        let log = [&engine.log, &engine.other][step.handle];
        match step.action {
            Action::Commit { writes, under } => self.commit(log, &writes, under).await,
            Action::Read { stream, after, limit } => self.read(log, stream, after, limit).await,
            Action::Remove { streams } => self.remove(log, &streams).await,
            Action::Heads {
                status,
                order,
                after,
                limit,
            } => self.heads(log, status, order, after, limit).await,
            Action::Lease { key, owner, ticks } => self.lease(log, key, owner, ticks).await,
            Action::Renew { lease, ticks } => {
                let Some(lease) = self.given(lease) else {
                    return;
                };
                let renewed = log.renew(&lease, TICK * ticks).await;
                assert_eq!(renewed.is_ok(), self.is_held(&lease), "{renewed:?}");
                if renewed.is_ok() {
                    let expires = self.now + ticks;
                    let held = self.leases.values_mut().find(|held| held.token == lease.token);
                    held.unwrap().expires = expires;
                }
            }
            Action::Release { lease } => {
                let Some(lease) = self.given(lease) else {
                    return;
                };
                let released = log.release(&lease).await;
                assert_eq!(released.is_ok(), self.is_held(&lease), "{released:?}");
                self.leases.retain(|_, held| held.token != lease.token);
            }
            Action::Pass { ticks } => {
                self.now += ticks;
                engine.time.pass(TICK * ticks);
            }
            Action::Trim { max_bytes } => self.trim(log, max_bytes).await,
        }
    }

    fn version(&self, index: usize) -> Version {
        let found = self.streams.get(&index);
        found.map_or(Version::NONE, |found| found.version)
    }

    fn expected(&self, index: usize, seen: Seen) -> Version {
        match seen {
            Seen::Current => self.version(index),
            Seen::None => Version::NONE,
            Seen::Earlier => match (self.streams.get(&index), self.removed.get(&index)) {
                (Some(found), _) => found.earlier,
                (None, Some(removed)) => *removed,
                (None, None) => Version::from_u64(1),
            },
        }
    }

    async fn remove(&mut self, log: &Log, given: &[(usize, Seen)]) {
        let given: BTreeMap<usize, Version> = given
            .iter()
            .map(|(index, seen)| (*index, self.expected(*index, *seen)))
            .collect();
        let streams = given
            .iter()
            .map(|(index, expected)| (stream(&name(*index)), *expected));
        let removed = log.remove(streams.collect()).await;
        let stale = given.iter().find(|(index, seen)| self.version(**index) != **seen);
        if let Some((index, _)) = stale {
            let Err(CommitError::Conflict { stream, actual }) = removed else {
                panic!("{removed:?} though {index} is stale");
            };
            assert_eq!(stream.as_str(), name(*index));
            assert_eq!(actual.map(|actual| *actual), self.stored(*index));
            return;
        }
        removed.unwrap();
        for index in given.keys() {
            let gone = self.streams.remove(index);
            self.removed.extend(gone.map(|gone| (*index, gone.version)));
        }
    }

    async fn commit(&mut self, log: &Log, given: &[(usize, Seen, Option<u8>, usize)], under: Option<usize>) {
        let mut writes: BTreeMap<usize, Write> = BTreeMap::new();
        for (index, seen, new_status, events) in given {
            let expected = self.expected(*index, *seen);
            let new_status = new_status.or((expected == Version::NONE).then_some(0));
            let events = (0..*events).map(|_| {
                self.events += 1;
                event(&self.events.to_string())
            });
            let write = Write {
                stream: stream(&name(*index)),
                expected,
                head: new_status.map(|number| head(&status(number), &status(number))),
                events: events.collect(),
            };
            writes.insert(*index, write);
        }
        let mut commit = Commit::all(writes.values().cloned().collect());
        let lease = under.and_then(|lease| self.given(lease));
        commit.under.extend(lease.clone());
        let committed = log.commit(commit).await;

        if lease.is_some_and(|lease| !self.is_held(&lease)) {
            assert!(
                matches!(committed, Err(CommitError::Fenced { .. })),
                "{committed:?}"
            );
            return;
        }
        let stale: Vec<usize> = writes
            .iter()
            .filter(|(index, write)| {
                let version = self
                    .streams
                    .get(index)
                    .map_or(Version::NONE, |found| found.version);
                version != write.expected
            })
            .map(|(index, _)| *index)
            .collect();
        if !stale.is_empty() {
            let Err(CommitError::Conflict { stream, actual }) = committed else {
                panic!("{committed:?} though {stale:?} are stale");
            };
            let index = stale.into_iter().find(|index| name(*index) == stream.as_str());
            assert_eq!(actual.map(|actual| *actual), self.stored(index.unwrap()));
            return;
        }
        for ((index, write), answer) in writes.into_iter().zip(committed.unwrap()) {
            self.saw(answer.version);
            let found = self.streams.entry(index).or_insert_with(|| ModelStream {
                first: 1,
                ..ModelStream::default()
            });
            found.earlier = match std::mem::replace(&mut found.version, answer.version) {
                Version::NONE => self.removed.get(&index).copied().unwrap_or_default(),
                earlier => earlier,
            };
            if let Some(head) = write.head {
                found.status = (0..3).find(|number| status(*number) == *head.status).unwrap();
            }
            let texts = write.events.iter().map(|event| event.body.to_vec());
            found
                .events
                .extend(texts.map(|text| String::from_utf8(text).unwrap()));
            assert_eq!(answer.last_sequence.get(), found.last());
            let furthest = self.furthest.entry(index).or_default();
            *furthest = found.last().max(*furthest);
        }
    }

    async fn read(&self, log: &Log, index: usize, after: u64, limit: u32) {
        let page = log
            .read(&stream(&name(index)), Sequence::from_u64(after), limit)
            .await
            .unwrap();
        let found: Vec<_> = page
            .events
            .iter()
            .map(|event| (event.sequence.get(), text(event)))
            .collect();
        let (mut expected, mut bounds) = (Vec::new(), (0, 0));
        if let Some(known) = self.streams.get(&index) {
            bounds = (known.first, known.last());
            expected = (known.first..).zip(known.events.iter().cloned()).collect();
            expected.retain(|(sequence, _)| *sequence > after);
            expected.truncate(limit as usize);
        }
        assert_eq!(((page.first.get(), page.last.get()), found), (bounds, expected));
    }

    async fn heads(
        &self,
        log: &Log,
        wanted: Option<u8>,
        order: HeadsOrder,
        after: Option<usize>,
        limit: u32,
    ) {
        let query = HeadsQuery {
            kind: Arc::from("job"),
            status: wanted.map(|number| Arc::from(status(number))),
            order,
            after: after.map(|index| stream(&name(index))),
            limit,
        };
        let mut expected: Vec<_> = self.streams.iter().collect();
        match order {
            HeadsOrder::OldestFirst => {
                expected.retain(|(index, _)| after.is_none_or(|after| **index > after))
            }
            HeadsOrder::NewestFirst => {
                expected.retain(|(index, _)| after.is_none_or(|after| **index < after));
                expected.reverse();
            }
        }
        expected.retain(|(_, found)| wanted.is_none_or(|number| number == found.status));
        expected.truncate(limit as usize);
        let expected: Vec<_> = expected
            .iter()
            .map(|(index, _)| self.stored(**index).unwrap())
            .collect();
        assert_eq!(log.heads(query).await.unwrap(), expected);
    }

    async fn lease(&mut self, log: &Log, key: usize, owner: usize, ticks: u32) {
        let taken = log
            .lease(&format!("key{key}"), &format!("owner{owner}"), TICK * ticks)
            .await;
        let held = self.leases.get(&key).filter(|held| held.expires > self.now);
        match (taken, held) {
            (Ok(lease), None) => {
                self.saw(lease.token);
                let (token, expires) = (lease.token, self.now + ticks);
                self.leases.insert(key, ModelLease { token, expires });
                self.given.push(lease);
            }
            (Err(LeaseError::Held { remaining, .. }), Some(held)) => {
                let most = TICK * (held.expires - self.now);
                assert!(remaining <= most && remaining + TICK / 2 > most, "{remaining:?}");
            }
            (taken, held) => panic!("{taken:?} though {held:?}"),
        }
    }

    async fn trim(&mut self, log: &Log, max_bytes: u64) {
        let policy = RetentionPolicy {
            max_bytes_per_stream: Some(max_bytes),
            max_age: None,
        };
        let mut expected = Vec::new();
        for (index, found) in &mut self.streams {
            let mut bytes = 0;
            let kept = found.events.iter().rev().take_while(|text| {
                bytes += text.len() as u64;
                bytes <= max_bytes
            });
            let dropped = found.events.len() - kept.count();
            if dropped > 0 {
                found.events.drain(..dropped);
                found.first += dropped as u64;
                let trimmed = Trimmed {
                    events: dropped as u64,
                    first: Sequence::from_u64(found.first),
                };
                expected.push((stream(&name(*index)), trimmed));
            }
        }
        assert_eq!(log.trim("job", policy).await.unwrap(), expected);
    }

    /// What a tail from the start yields, as far as the streams go now.
    async fn check_tails(&self, log: &Log) {
        let token = CancellationToken::new();
        for (index, found) in &self.streams {
            let mut tail = log.tail(&stream(&name(*index)), Sequence::START, &token.scope());
            if found.first > 1 {
                let after = Sequence::from_u64(found.first - 1);
                assert_eq!(tail.next().await.unwrap(), TailItem::Resync { after });
            }
            for (sequence, expected) in (found.first..).zip(&found.events) {
                let TailItem::Event(event) = tail.next().await.unwrap() else {
                    panic!("event {sequence} was skipped");
                };
                assert_eq!((event.sequence.get(), &text(&event)), (sequence, expected));
            }
        }
    }
}

/// Follows a stream while it is written, and answers the place it got to.
async fn follow(log: Log, index: usize, token: CancellationToken) -> u64 {
    let mut tail = log.tail(&stream(&name(index)), Sequence::START, &token.scope());
    let mut place = 0;
    while let Ok(item) = tail.next().await {
        match item {
            TailItem::Event(event) => {
                assert_eq!(event.sequence.get(), place + 1);
                place += 1;
            }
            TailItem::Resync { after } => {
                // Either events were dropped, or the stream that some of were seen is gone.
                assert!(after.get() > place || (after == Sequence::START && place > 0));
                place = after.get();
            }
        }
    }
    place
}

async fn run(engine: Engine, steps: Vec<Step>) {
    let token = CancellationToken::new();
    let followers: Vec<_> = (0..STREAMS)
        .map(|index| tokio::spawn(follow(engine.other.clone(), index, token.clone())))
        .collect();
    let mut model = Model::default();
    for step in steps {
        model.step(&engine, step).await;
        for index in 0..STREAMS {
            let found = engine.log.head(&stream(&name(index))).await.unwrap();
            assert_eq!(found, model.stored(index));
        }
    }
    token.cancel(Cause::new("test", "is over"));
    for (index, follower) in followers.into_iter().enumerate() {
        let furthest = model.furthest.get(&index).copied().unwrap_or(0);
        assert!(follower.await.unwrap() <= furthest);
    }
    // While somebody follows a stream, its last events are at hand though they may have been dropped; not after it.
    model.check_tails(&engine.other).await;
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_does_what_the_model_does(steps in steps()) {
        runtime().block_on(run(engines::sqlite(), steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn postgres_does_what_the_model_does(steps in steps()) {
        runtime().block_on(async {
            if let Some(engine) = engines::postgres().await {
                run(engine, steps).await;
            }
        });
    }
}
