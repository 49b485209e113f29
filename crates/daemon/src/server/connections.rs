//! The open connections of a listener, and which one is closed when a new one needs its permit.
//!
//! A connection is idle until its first request has fully arrived, and after each answer. An idle connection never keeps
//! a new one out: the one that has been idle longest is evicted. A connection with a request in flight is never evicted.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use kernel::{CancellationToken, Cause, Scope};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Clone, Debug)]
pub(super) struct ConnectionPool {
    permits: Arc<Semaphore>,
    /// Guards the table; held only to look up or change one entry.
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    connections: HashMap<u64, Connection>,
    idle: BTreeMap<u64, u64>,
    /// A new connection waits and none was idle: the next one that becomes idle is evicted.
    eviction_pending: bool,
}

#[derive(Debug)]
struct Connection {
    /// `None` if the answer is a stream, which has its own permit.
    permit: Option<OwnedSemaphorePermit>,
    state: ConnectionState,
    evicted: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    New {
        since: u64,
    },
    Working,
    /// Waits for another request. The end of the last answer may still be on its way.
    Answered {
        since: u64,
    },
}

impl ConnectionPool {
    pub(super) fn new(number: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(number)),
            table: Arc::default(),
        }
    }

    /// Waits for a permit for a new connection. If there is none, evicts the connection that has been idle longest.
    ///
    /// *Cancel safety*: may be dropped at any time; a connection may have been evicted in vain.
    pub(super) async fn take(&self) -> io::Result<PooledConnection> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.lock().evict_oldest();
                let permit = Arc::clone(&self.permits).acquire_owned().await;
                self.lock().eviction_pending = false;
                permit.map_err(io::Error::other)?
            }
        };
        let number = self.lock().add(permit);
        Ok(PooledConnection {
            pool: self.clone(),
            number,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change is complete before anything can panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn add(&mut self, permit: OwnedSemaphorePermit) -> u64 {
        let number = self.next_number();
        self.idle.insert(number, number);
        self.connections.insert(
            number,
            Connection {
                permit: Some(permit),
                state: ConnectionState::New { since: number },
                evicted: CancellationToken::new(),
            },
        );
        number
    }

    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn evict_oldest(&mut self) {
        let oldest = self.idle.pop_first().map(|(_, number)| number);
        match oldest.and_then(|number| self.connections.get(&number)) {
            Some(connection) => connection.evict(),
            None => self.eviction_pending = true,
        }
    }

    fn start_request(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number) {
            if let ConnectionState::New { since } | ConnectionState::Answered { since } = connection.state {
                self.idle.remove(&since);
            }
            connection.state = ConnectionState::Working;
        }
    }

    fn finish_request(&mut self, number: u64) {
        let since = self.next_number();
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.state = ConnectionState::Answered { since };
        // Evicting a connection without a permit wouldn't help.
        if connection.permit.is_none() {
            return;
        }
        if self.eviction_pending {
            self.eviction_pending = false;
            connection.evict();
        } else {
            self.idle.insert(since, number);
        }
    }

    fn release_permit(&mut self, number: u64) -> Option<OwnedSemaphorePermit> {
        let connection = self.connections.get_mut(&number)?;
        if let ConnectionState::New { since } | ConnectionState::Answered { since } = connection.state {
            self.idle.remove(&since);
        }
        connection.permit.take()
    }

    fn remove(&mut self, number: u64) {
        self.start_request(number);
        self.connections.remove(&number);
    }
}

impl Connection {
    fn evict(&self) {
        self.evicted
            .cancel(Cause::new("the daemon", "another client wants to connect"));
    }
}

/// One connection of the pool. Dropping it returns its permit.
#[derive(Debug)]
pub(super) struct PooledConnection {
    pool: ConnectionPool,
    number: u64,
}

impl PooledConnection {
    pub(super) fn evicted(&self) -> Scope {
        let table = self.pool.lock();
        let connection = table.connections.get(&self.number);
        connection.map_or_else(
            || CancellationToken::new().scope(),
            |connection| connection.evicted.scope(),
        )
    }

    pub(super) fn state(&self) -> ConnectionState {
        let table = self.pool.lock();
        let connection = table.connections.get(&self.number);
        connection.map_or(ConnectionState::Working, |connection| connection.state)
    }

    pub(super) fn start_request(&self) {
        self.pool.lock().start_request(self.number);
    }

    /// The answer is a stream, or the connection no longer speaks HTTP: another connection may take the permit.
    pub(super) fn release_permit(&self) {
        let permit = self.pool.lock().release_permit(self.number);
        drop(permit);
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        self.pool.lock().remove(self.number);
    }
}

/// The body of an answer. When it ends, its connection waits for the next request.
#[derive(Debug)]
pub(super) struct TrackedBody<B> {
    body: B,
    pooled: Arc<PooledConnection>,
}

impl<B> TrackedBody<B> {
    pub(super) fn new(body: B, pooled: Arc<PooledConnection>) -> Self {
        Self { body, pooled }
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        self.pooled.pool.lock().finish_request(self.pooled.number);
    }
}

impl<B: Body + Unpin> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    fn take_now(pool: &ConnectionPool) -> Arc<PooledConnection> {
        match pin!(pool.take()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(pooled) => Arc::new(pooled.unwrap()),
            Poll::Pending => panic!("no permit is free"),
        }
    }

    /// Lets a new connection ask for a permit, and returns which ones it evicted.
    fn evicted_by_newcomer(pool: &ConnectionPool, all: &[&Arc<PooledConnection>]) -> Vec<bool> {
        let mut take = pin!(pool.take());
        let polled = take.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "a permit was free");
        all.iter().map(|pooled| pooled.evicted().is_cancelled()).collect()
    }

    #[test]
    fn the_connection_that_was_idle_longest_is_evicted() {
        let pool = ConnectionPool::new(3);
        let [first, second, third] = [(); 3].map(|()| take_now(&pool));
        first.start_request();
        drop(TrackedBody::new((), Arc::clone(&first)));
        assert!(matches!(first.state(), ConnectionState::Answered { .. }));
        let all = [&first, &second, &third];
        assert_eq!(evicted_by_newcomer(&pool, &all), [false, true, false]);
        assert_eq!(evicted_by_newcomer(&pool, &all), [false, true, true]);
        assert_eq!(evicted_by_newcomer(&pool, &all), [true, true, true]);
    }

    #[test]
    fn a_connection_with_a_request_is_evicted_once_it_has_answered() {
        let pool = ConnectionPool::new(1);
        let only = take_now(&pool);
        only.start_request();
        let mut take = pin!(pool.take());
        let mut context = Context::from_waker(Waker::noop());
        assert!(take.as_mut().poll(&mut context).is_pending());
        assert!(!only.evicted().is_cancelled());
        drop(TrackedBody::new((), Arc::clone(&only)));
        assert!(only.evicted().is_cancelled(), "a new connection still waits");
        drop(only);
        assert!(take.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn a_stream_returns_its_permit_and_is_not_evicted() {
        let pool = ConnectionPool::new(1);
        let stream = take_now(&pool);
        stream.start_request();
        stream.release_permit();
        let other = take_now(&pool);
        drop(TrackedBody::new((), Arc::clone(&stream)));
        assert_eq!(evicted_by_newcomer(&pool, &[&stream, &other]), [false, true]);
        // One that returned its permit while idle can no longer be evicted.
        other.release_permit();
        let waiting = take_now(&pool);
        waiting.release_permit();
        let last = take_now(&pool);
        assert_eq!(evicted_by_newcomer(&pool, &[&waiting, &last]), [false, true]);
        drop((waiting, last));
        drop((stream, other));
        assert_eq!(pool.lock().connections.len(), 0);
        assert_eq!(pool.lock().idle.len(), 0);
    }
}
