//! How a log learns of commits that were made elsewhere.
//!
//! After a commit a notification is sent for each stream that it appended to. That is a hint: the stream is looked
//! at, once for all its tails, and what is found there counts. Hints can be lost, with a connection or with a daemon
//! that ends between the two; so every watched stream is looked at whenever a new connection has begun to listen,
//! and every [`LOOK_EVERY`] besides.

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
    read,
    session::{self, Driver},
};
use crate::{
    error::LogError,
    hub::Hub,
    names::{Sequence, StreamId},
};

/// How often watched streams are looked at without any hint. It bounds how late a tail is when a hint is lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The pauses before listening again after a failure; the last one is repeated.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(3),
];
/// How many streams are caught up with in one statement: each may yield a whole window of events.
const CATCH_UP_STREAMS: usize = 16;
/// The payload that says that any stream may have moved.
pub(super) const EVERYTHING: &str = "*";

/// The payload that says how far a stream is. It stays far below the 8,000 bytes that a payload may have.
pub(super) fn hint(stream: &StreamId, last: Sequence) -> String {
    format!("{last} {stream}")
}

fn parse(payload: &str) -> Option<(StreamId, Sequence)> {
    let (last, stream) = payload.split_once(' ')?;
    let last = Sequence::from_u64(last.parse().ok()?);
    Some((StreamId::new(stream).ok()?, last))
}

/// Sends hints. The channel has the name of the schema, so that logs that share a database do not wake each other.
pub(super) async fn tell(connection: &Connection, schema: &str, hints: &[String]) -> Result<(), Error> {
    if hints.is_empty() {
        return Ok(());
    }
    let notify = &connection.statements.notify;
    connection.query(notify, [&schema, &hints]).await.map(drop)
}

/// Sends hints, and does not wait until they have gone out. After a `COMMIT` that is sent in the same step, they go
/// out when it is done.
pub(super) async fn tell_later(connection: &Connection, schema: &str, hints: &[String]) {
    let mut telling = pin!(tell(connection, schema, hints));
    poll_fn(|context| {
        // The first poll sends it. The answer is for nobody.
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
            () = self.listen_again_and_again() => {}
        }
    }

    async fn listen_again_and_again(&self) {
        let mut failures = 0;
        loop {
            let error = self.listen(&mut failures).await;
            tracing::warn!(
                ?error,
                failures,
                "the log is not told of commits elsewhere for a moment"
            );
            session::back_off(PAUSES[failures.min(PAUSES.len() - 1)]).await;
            failures += 1;
        }
    }

    /// Listens on one connection until it fails. The count of failures starts again once it listens.
    async fn listen(&self, failures: &mut usize) -> LogError {
        let (client, mut driver) = match session::connect(self.pool.server()).await {
            Ok(connected) => connected,
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
                        // What was committed before this is found by looking, what comes after it by hints.
                        (is_listening, *failures) = (true, 0);
                        looks.reset_immediately();
                    }
                },
                heard = poll_fn(|context| self.hear(&mut driver, context)) => match heard {
                    Ok(Heard::Moved(moved)) => self.catch_up(&moved.into_iter().collect::<Vec<_>>()).await,
                    Ok(Heard::Anything) => self.look().await,
                    Err(error) => return error,
                },
                _ = looks.tick() => self.look().await,
            }
        }
    }

    /// Waits for hints, and takes all that have come. Those about streams that nobody watches are nothing.
    fn hear(&self, driver: &mut Driver, context: &mut Context<'_>) -> Poll<Result<Heard, LogError>> {
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
            let Some((stream, last)) = parse(&payload) else {
                return Poll::Ready(Ok(Heard::Anything));
            };
            if self.hub.told(&stream).is_some_and(|told| told < last) {
                moved.insert(stream);
            }
        }
        Poll::Ready(Ok(Heard::Moved(moved)))
    }

    /// Looks at every watched stream.
    async fn look(&self) {
        self.catch_up(&self.hub.watched()).await;
    }

    /// Looks how far some streams are, and reads their new events for their tails. What does not fit is left to the
    /// tails: they are told how far the stream is.
    async fn catch_up(&self, streams: &[StreamId]) {
        for streams in streams.chunks(CATCH_UP_STREAMS) {
            let told = |stream: &StreamId| Some((stream.clone(), self.hub.told(stream)?));
            let told: Vec<_> = streams.iter().filter_map(told).collect();
            match self.pool.read(|connection| read::newest(connection, &told)).await {
                Ok(moved) => moved.iter().for_each(|moved| {
                    self.hub.publish(&moved.stream, &moved.newest);
                    self.hub.hint(&moved.stream, moved.last);
                }),
                Err(error) => tracing::warn!(?error, "streams that are followed could not be looked at"),
            }
        }
    }
}

/// What the listener was told.
enum Heard {
    /// These streams have moved, most likely.
    Moved(BTreeSet<StreamId>),
    /// Any stream may have moved.
    Anything,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_read_as_it_was_written() {
        let stream = StreamId::new("job/with space/ü").unwrap();
        let last = Sequence::from_u64(42);
        assert_eq!(parse(&hint(&stream, last)), Some((stream, last)));
        for other in [EVERYTHING, "", "12", "x job/1", "-1 job/1", "12 "] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
