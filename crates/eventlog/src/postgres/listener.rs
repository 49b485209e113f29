//! How a log learns of commits by other processes.
//!
//! After a commit, a notification is sent for each stream that it appended to. That is only a hint: the stream is
//! read, once for all its tails, and the result counts. Hints can be lost with a connection, or with a daemon
//! that ends between the two. So every followed stream is also read whenever a new connection starts to listen,
//! and every [`LOOK_EVERY`].

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use kernel::Scope;
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::{AsyncMessage, Error};

use super::{
    connection::Connection,
    pool::Pool,
    read::{self, CurrentPosition, KnownPosition},
    session::{self, Driver, Link},
};
use crate::{
    error::LogError,
    hub::Hub,
    names::{Incarnation, Sequence, StreamId},
};

/// How often followed streams are read without any hint. It bounds how late a tail is when a hint is lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The pauses before listening again after a failure; the last one repeats.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
];
/// How many streams are caught up with in one statement: each may return a whole window of events.
const CATCH_UP_STREAMS: usize = 16;
/// The payload that says that any stream may have changed.
const EVERYTHING: &str = "*";

/// How many bytes of hints go into one payload. The limit is 8,000, and the last hint may exceed this.
const PAYLOAD_BYTES: usize = 7_000;
/// How many bytes a hint has at most, besides the name of its stream.
const NUMBERS_BYTES: usize = 2 * "18446744073709551615 ".len() + 1;

/// The position of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Hint {
    stream: StreamId,
    incarnation: Incarnation,
    last: Sequence,
}

impl Hint {
    pub(super) fn written(stream: &StreamId, incarnation: Incarnation, last: Sequence) -> Self {
        let stream = stream.clone();
        Self {
            stream,
            incarnation,
            last,
        }
    }

    pub(super) fn removed(stream: &StreamId, incarnation: Incarnation) -> Self {
        Self::written(stream, incarnation.next(), Sequence::START)
    }

    fn parse(line: &str) -> Option<Self> {
        let (incarnation, rest) = line.split_once(' ')?;
        let (last, stream) = rest.split_once(' ')?;
        Some(Self {
            stream: StreamId::new(stream).ok()?,
            incarnation: Incarnation::from_u64(incarnation.parse().ok()?),
            last: Sequence::from_u64(last.parse().ok()?),
        })
    }
}

/// Encodes hints as payloads: one per line, as many in each as fit.
fn payloads(hints: &[Hint]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for Hint {
        stream,
        incarnation,
        last,
    } in hints
    {
        let line = format!("{} {last} {stream}", incarnation.get());
        match payloads
            .last_mut()
            .filter(|payload| payload.len() < PAYLOAD_BYTES)
        {
            Some(payload) => {
                payload.push('\n');
                payload.push_str(&line);
            }
            None => payloads.push(line),
        }
    }
    payloads
}

/// Which payload each of these streams goes into, as many in each as fit.
fn payload_numbers(ids: &[&str]) -> Vec<i32> {
    let (mut payload, mut bytes) = (0, 0);
    let number = |id: &&str| {
        if bytes >= PAYLOAD_BYTES {
            (payload, bytes) = (payload + 1, 0);
        }
        bytes += id.len() + NUMBERS_BYTES;
        payload
    };
    ids.iter().map(number).collect()
}

/// The hints of a payload; `None` if it says that any stream may have changed, or can't be parsed.
fn parse(payload: &str) -> Option<Vec<Hint>> {
    payload.split('\n').map(Hint::parse).collect()
}

/// Sends payloads. The channel has the name of the schema, so that logs in one database don't wake each other.
async fn send(connection: &Connection, schema: &str, payloads: &[String]) -> Result<(), Error> {
    if payloads.is_empty() {
        return Ok(());
    }
    let notify = &connection.statements.notify;
    connection.query(notify, [&schema, &payloads]).await.map(drop)
}

/// Sends hints without waiting for the answer. After a `COMMIT` that is sent in the same step, they are delivered
/// when it is done.
pub(super) async fn send_hints(connection: &Connection, schema: &str, hints: &[Hint]) {
    send_later(connection, schema, &payloads(hints)).await;
}

/// Sends hints about the streams of a commit that is sent in the same step. They are delivered only if it is
/// made.
pub(super) async fn send_written_hints(connection: &Connection, schema: &str, ids: &[&str], mark: i64) {
    if ids.is_empty() {
        return;
    }
    let payloads = payload_numbers(ids);
    let notify = &connection.statements.notify_written;
    send_first(connection.query(notify, [&schema, &ids, &payloads, &mark])).await;
}

/// Sends the hint that any stream may have changed.
pub(super) async fn send_everything_hint(connection: &Connection, schema: &str) {
    send_later(connection, schema, &[EVERYTHING.to_owned()]).await;
}

async fn send_later(connection: &Connection, schema: &str, payloads: &[String]) {
    send_first(send(connection, schema, payloads)).await;
}

/// The first poll sends the statement. Nobody waits for the answer.
async fn send_first(telling: impl Future) {
    let mut telling = pin!(telling);
    poll_fn(|context| {
        drop(telling.as_mut().poll(context));
        Poll::Ready(())
    })
    .await;
}

pub(super) struct Listener {
    pub(super) pool: Arc<Pool>,
    pub(super) hub: Hub,
    /// Cancelled when the log is closed.
    pub(super) scope: Scope,
}

impl Listener {
    /// Listens until the log is closed.
    pub(super) async fn run(self) {
        let mut closed = pin!(self.scope.wait());
        tokio::select! {
            biased;
            _ = &mut closed => {}
            () = self.listen_with_retries() => {}
        }
    }

    async fn listen_with_retries(&self) {
        let mut failures = 0;
        loop {
            let error = self.listen(&mut failures).await;
            tracing::warn!(
                ?error,
                failures,
                "cannot listen for commits by other processes; retrying"
            );
            session::back_off(PAUSES[failures.min(PAUSES.len() - 1)]).await;
            failures += 1;
        }
    }

    /// Listens on one connection until it fails. The count of failures is reset once it listens.
    async fn listen(&self, failures: &mut usize) -> LogError {
        let Link {
            client, mut driver, ..
        } = match session::connect(self.pool.server()).await {
            Ok(link) => link,
            Err(error) => return error.into(),
        };
        let listen = format!("LISTEN \"{}\"", self.pool.server().schema);
        let mut listening = pin!(client.batch_execute(&listen));
        let mut is_listening = false;
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                begun = &mut listening, if !is_listening => match begun {
                    Err(error) => return error.into(),
                    Ok(()) => {
                        // Earlier commits are found by reading, later ones by hints.
                        if *failures > 0 {
                            self.hub.doubt();
                        }
                        (is_listening, *failures) = (true, 0);
                        looks.reset_immediately();
                    }
                },
                heard = poll_fn(|context| self.poll_hints(&mut driver, context)) => match heard {
                    Ok(Received::CurrentPosition(moved)) => self.catch_up(&moved.into_iter().collect::<Vec<_>>()).await,
                    Ok(Received::Anything) => self.look().await,
                    Err(error) => return error,
                },
                _ = looks.tick() => self.look().await,
            }
        }
    }

    /// Waits for hints, and takes all that have arrived. Hints about streams without tails only matter to
    /// watchers of a prefix.
    fn poll_hints(&self, driver: &mut Driver, context: &mut Context<'_>) -> Poll<Result<Received, LogError>> {
        let mut moved = BTreeSet::new();
        while moved.len() < CATCH_UP_STREAMS {
            let payload = match driver.poll_message(context) {
                Poll::Ready(Some(Ok(AsyncMessage::Notification(told)))) => told.payload().to_owned(),
                Poll::Ready(Some(Ok(_))) => continue,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                Poll::Ready(None) => return Poll::Ready(Err(LogError::Closed)),
                Poll::Pending if moved.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            };
            let Some(hints) = parse(&payload) else {
                return Poll::Ready(Ok(Received::Anything));
            };
            self.hub
                .touch(|prefix| hints.iter().any(|hint| hint.stream.is_below(prefix)));
            let is_news = |hint: &Hint| {
                let told = self.hub.told(&hint.stream);
                told.is_some_and(|told| told < (hint.incarnation, hint.last))
            };
            moved.extend(hints.into_iter().filter(is_news).map(|hint| hint.stream));
        }
        Poll::Ready(Ok(Received::CurrentPosition(moved)))
    }

    /// Reads every followed stream, and wakes all watchers of prefixes.
    async fn look(&self) {
        self.hub.touch(|_| true);
        self.catch_up(&self.hub.watched()).await;
    }

    /// Reads the positions and new events of some streams for their tails. What doesn't fit is left to the tails,
    /// which are told the position.
    async fn catch_up(&self, streams: &[StreamId]) {
        for streams in streams.chunks(CATCH_UP_STREAMS) {
            let told = |stream: &StreamId| {
                let (incarnation, last) = self.hub.told(stream)?;
                let stream = stream.clone();
                Some(KnownPosition {
                    stream,
                    incarnation,
                    last,
                })
            };
            let told: Vec<_> = streams.iter().filter_map(told).collect();
            match self.pool.read(|connection| read::newest(connection, &told)).await {
                Ok(found) => told.iter().for_each(|told| self.publish_found(told, &found)),
                Err(error) => tracing::warn!(?error, "could not read the followed streams"),
            }
        }
    }

    /// Publishes what was found about a stream, given what its tails were told before.
    fn publish_found(&self, told: &KnownPosition, found: &[CurrentPosition]) {
        let stream = &told.stream;
        let (place, moved) = (
            (told.incarnation, told.last),
            found.iter().find(|moved| moved.stream == *stream),
        );
        match moved {
            // What the tails were told had been committed before this read. So the server lost it in a crash.
            Some(moved) if (moved.incarnation, moved.last) < place => {
                self.hub.rewind(stream, place, (moved.incarnation, moved.last));
            }
            Some(moved) => {
                self.hub.publish(stream, moved.incarnation, &moved.newest);
                self.hub.hint(stream, moved.incarnation, moved.last);
            }
            // The stream was removed. After this hint it has no last event, so it isn't reported again.
            None if told.last > Sequence::START => {
                self.hub.hint(stream, told.incarnation.next(), Sequence::START)
            }
            None => {}
        }
    }
}

enum Received {
    /// These streams have probably changed.
    CurrentPosition(BTreeSet<StreamId>),
    /// Any stream may have changed.
    Anything,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COMMIT_LIMIT_ITEMS, NAME_LIMIT_BYTES};

    #[test]
    fn a_hint_is_read_as_it_was_written() {
        let stream = StreamId::new("job/with space/ü").unwrap();
        let hint = Hint::written(&stream, Incarnation::from_u64(7), Sequence::from_u64(42));
        let removed = Hint::removed(&stream, Incarnation::from_u64(7));
        assert_eq!(
            (removed.incarnation, removed.last),
            (Incarnation::from_u64(8), Sequence::START)
        );
        assert_eq!(payloads(&[]), Vec::<String>::new());
        let hints = [hint.clone(), removed];
        let payload = "7 42 job/with space/ü\n8 0 job/with space/ü";
        assert_eq!(payloads(&hints), [payload]);
        assert_eq!(parse(payload), Some(hints.to_vec()));
        for other in [
            EVERYTHING,
            "",
            "12",
            "1 12",
            "x 1 job/1",
            "1 x job/1",
            "1 -1 job/1",
            "1 12 ",
            "1 1 s\n",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn many_hints_fit_into_payloads() {
        let stream = StreamId::new(&"x".repeat(NAME_LIMIT_BYTES)).unwrap();
        let hint = Hint::written(
            &stream,
            Incarnation::from_u64(u64::MAX),
            Sequence::from_u64(u64::MAX),
        );
        let hints = vec![hint; COMMIT_LIMIT_ITEMS];
        let payloads = payloads(&hints);
        assert!(
            payloads.iter().all(|payload| payload.len() < 8_000),
            "too long for the server"
        );
        let ids = vec![stream.as_str(); COMMIT_LIMIT_ITEMS];
        let numbers = payload_numbers(&ids);
        let in_first = numbers.iter().filter(|number| **number == 0).count();
        assert!(
            in_first > 1 && in_first * (NAME_LIMIT_BYTES + NUMBERS_BYTES) < 8_000,
            "{in_first}"
        );
        assert!(numbers.is_sorted() && numbers.last() > Some(&1));
        let back: Vec<_> = payloads
            .iter()
            .flat_map(|payload| parse(payload).unwrap())
            .collect();
        assert_eq!(back, hints);
    }
}
