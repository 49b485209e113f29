//! The connections of a log: a few, each used by one caller at a time, and reopened when they are lost.
//!
//! 1. A connection returns to the pool only when no transaction is open on it. If work is abandoned half-way, its
//!    connection is closed, and the server rolls back.
//! 2. Work is retried only if it is known that nothing of it was written, or if the work finds that out itself,
//!    and at most [`ATTEMPTS`] times.
//! 3. Everyone waits for a server that is away for a moment: it may be restarting, or another one may be taking
//!    over. Once it has been away for longer, nobody waits.

use std::{
    fmt,
    future::Future,
    mem,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kernel::{Deadline, Slot, SystemClock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Error;

use super::{
    connection::Connection,
    failure::{self, Failure},
    heartbeat::{Heartbeat, Silent},
    options::{PostgresOptions, Server},
    session::{self, ConnectError, Opening},
    tasks::Tasks,
};
use crate::{error::LogError, store::Health};

/// How many times work is tried that failed without a trace.
const ATTEMPTS: u32 = 4;
/// How long to wait for a server that is away, counted from when it was first missed. No caller waits longer, and
/// a lease outlasts it.
const OUTAGE_LIMIT: Duration = Duration::from_secs(8);
/// The pauses between attempts to connect; the last one repeats.
const CONNECT_PAUSES: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

pub(super) struct Pool {
    server: Server,
    tasks: Tasks,
    /// One permit per connection. Callers without one queue up.
    permits: Arc<Semaphore>,
    /// Guards the connections that nobody uses; held to take one or to return it.
    idle: Mutex<Vec<Arc<Connection>>>,
    health: Slot<Health>,
    /// Until when to wait for a server that is away.
    outage_deadline: Slot<Option<Deadline>>,
    heartbeat: Heartbeat,
}

/// What some work is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    Read,
    Write,
}

impl Purpose {
    /// The error for work that was abandoned half-way. If it has written something, that may have taken effect.
    fn given_up(self, silent: Silent) -> LogError {
        match self {
            Self::Read => LogError::Unreachable(Arc::new(silent)),
            Self::Write => LogError::OutcomeUnknown(Arc::new(silent)),
        }
    }
}

impl Pool {
    /// A pool with its first connection.
    pub(super) fn new(
        options: &PostgresOptions,
        server: Server,
        tasks: Tasks,
        first: Connection,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            tasks,
            permits: Arc::new(Semaphore::new(options.connections.get())),
            idle: Mutex::new(vec![Arc::new(first)]),
            health: Slot::new(Health::Writable),
            outage_deadline: Slot::new(None),
            heartbeat: Heartbeat::new(),
        })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(super) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    /// Records that the server gave no sign of life.
    pub(super) fn report_unreachable(&self, error: LogError) {
        self.note(Purpose::Read, error);
    }

    pub(super) fn health(&self) -> Health {
        (*self.health.read().state).clone()
    }

    /// Runs work that only reads.
    pub(super) async fn read<T, F, W>(self: &Arc<Self>, work: F) -> Result<T, LogError>
    where
        F: Fn(Pooled) -> W,
        W: Future<Output = Result<T, Failure>>,
    {
        self.run(Purpose::Read, work).await
    }

    /// Runs work that writes. Its result decides whether the log accepts writes.
    pub(super) async fn write<T, E, F, W>(self: &Arc<Self>, work: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: Fn(Pooled) -> W,
        W: Future<Output = Result<T, Failure<E>>>,
    {
        self.run(Purpose::Write, work).await
    }

    /// Runs work that can't be restarted from the beginning.
    pub(super) async fn once<T, E, F, W>(self: &Arc<Self>, work: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(Pooled) -> W,
        W: Future<Output = Result<T, Failure<E>>>,
    {
        match work(self.take().await?).await {
            Ok(value) => Ok(value),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(Failure::Log(error)) => Err(error.into()),
            Err(Failure::Again(error)) => Err(LogError::from(error).into()),
            Err(Failure::Unclear(error)) => Err(LogError::OutcomeUnknown(error).into()),
        }
    }

    async fn run<T, E, F, W>(self: &Arc<Self>, purpose: Purpose, work: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: Fn(Pooled) -> W,
        W: Future<Output = Result<T, Failure<E>>>,
    {
        if let Err(silent) = self.heartbeat.wait_a_moment().await {
            return Err(LogError::Unreachable(Arc::new(silent)).into());
        }
        let (mut attempt, mut unclear) = (0, None);
        loop {
            attempt += 1;
            let taken = self.heartbeat.while_answering(self.take()).await;
            let failed = match taken.unwrap_or_else(|silent| Err(LogError::Unreachable(Arc::new(silent)))) {
                Err(error) => Failure::Log(error),
                Ok(pooled) => match self.heartbeat.while_answering(work(pooled)).await {
                    Ok(Ok(value)) => {
                        if purpose == Purpose::Write {
                            self.set_health(Health::Writable);
                        }
                        return Ok(value);
                    }
                    Ok(Err(failed)) => failed,
                    Err(silent) => Failure::Log(purpose.given_up(silent)),
                },
            };
            let error = match failed {
                Failure::Refused(refusal) => return Err(refusal),
                Failure::Again(error) if attempt < ATTEMPTS => {
                    self.prepare_retry(&error, is_elsewhere(&error));
                    continue;
                }
                Failure::Unclear(error) if attempt < ATTEMPTS => {
                    self.prepare_retry(&error, true);
                    unclear = Some(error);
                    continue;
                }
                Failure::Again(error) => error.into(),
                Failure::Unclear(error) => LogError::OutcomeUnknown(error),
                Failure::Log(error) => error,
            };
            let error = self.note(purpose, error);
            return Err(match (unclear, error) {
                // An earlier attempt may have been written.
                (Some(unclear), LogError::Unreachable(_)) => LogError::OutcomeUnknown(unclear).into(),
                (_, error) => error.into(),
            });
        }
    }

    fn prepare_retry(&self, error: &dyn fmt::Display, is_lost: bool) {
        tracing::debug!(%error, "retrying work on the log's database");
        if is_lost {
            // The other connections are probably lost too but haven't noticed, or lead to the same server.
            let lost = mem::take(&mut *self.lock_idle());
            drop(lost);
        }
    }

    async fn take(self: &Arc<Self>) -> Result<Pooled, LogError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| LogError::Closed)?;
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => Arc::new(self.connect().await?),
        };
        Ok(Pooled {
            pool: Arc::clone(self),
            connection,
            state: State::Clean,
            _permit: permit,
        })
    }

    /// Adds a connection that is being opened, before somebody needs it.
    pub(super) async fn add_spare(self: &Arc<Self>, opening: Opening) {
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
            return;
        };
        match session::finish(opening, &self.server, &self.tasks).await {
            Ok(connection) => drop(Pooled {
                connection: Arc::new(connection),
                state: State::Clean,
                pool: Arc::clone(self),
                _permit: permit,
            }),
            // Whoever needs a connection opens one, and gets the error.
            Err(error) => {
                tracing::debug!(error = %LogError::from(error), "could not open a spare connection")
            }
        }
    }

    fn take_idle(&self) -> Option<Arc<Connection>> {
        let mut idle = self.lock_idle();
        while let Some(connection) = idle.pop() {
            if !connection.client.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Connection, LogError> {
        let mut pauses = CONNECT_PAUSES.into_iter();
        let [.., longest] = CONNECT_PAUSES;
        loop {
            let error = match session::open(&self.server, &self.tasks).await {
                Ok(connection) => {
                    self.report_reachable();
                    return Ok(connection);
                }
                Err(error) => error,
            };
            match &error {
                ConnectError::Temporary(_) if self.should_wait() => {
                    session::back_off(pauses.next().unwrap_or(longest)).await;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Whether it is worth waiting for a server that was just missed.
    fn should_wait(&self) -> bool {
        let seen = self.outage_deadline.read();
        if let Some(until) = &*seen.state {
            return !until.has_passed();
        }
        let until = Deadline::after(&SystemClock::shared(), OUTAGE_LIMIT);
        // Refused only if somebody else has just missed it as well.
        drop(self.outage_deadline.transition(seen.generation, Some(until)));
        true
    }

    /// Records that the server answers again. Whether it accepts writes is another question.
    pub(super) fn report_reachable(&self) {
        let seen = self.outage_deadline.read();
        if seen.state.is_some() {
            // Refused only if somebody else has just recorded something newer.
            drop(self.outage_deadline.transition(seen.generation, None));
        }
        let was_unreachable = matches!(
            self.health(),
            Health::Refusing {
                reason: LogError::Unreachable(_)
            }
        );
        if was_unreachable {
            self.set_health(Health::Writable);
        }
    }

    /// Records an error that means that the log doesn't accept writes.
    fn note(&self, purpose: Purpose, reason: LogError) -> LogError {
        let refuses = match &reason {
            LogError::Unreachable(_) => true,
            LogError::DiskFull | LogError::ReadOnly | LogError::Corrupt(_) => purpose == Purpose::Write,
            _ => false,
        };
        if refuses {
            self.set_health(Health::Refusing {
                reason: reason.clone(),
            });
        }
        reason
    }

    fn set_health(&self, health: Health) {
        let seen = self.health.read();
        if mem::discriminant(&*seen.state) != mem::discriminant(&health) {
            // Refused only if somebody else has just recorded something newer.
            drop(self.health.transition(seen.generation, health));
        }
    }
}

/// Whether another connection, or another server, may work.
fn is_elsewhere(error: &Error) -> bool {
    failure::is_lost(error) || failure::is_read_only(error)
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("server", &self.server)
            .field("free", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

/// A connection in use. It is returned when it is dropped, unless a transaction is open on it.
pub(super) struct Pooled {
    pool: Arc<Pool>,
    connection: Arc<Connection>,
    state: State,
    _permit: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Clean,
    InTransaction,
}

impl Pooled {
    pub(super) fn schema(&self) -> &str {
        &self.pool.server.schema
    }

    /// Marks that a transaction is about to be opened.
    pub(super) fn enter_transaction(&mut self) {
        self.state = State::InTransaction;
    }

    /// Marks that `COMMIT` was answered, so no transaction is open anymore, whatever the answer was.
    pub(super) fn left_transaction(&mut self) {
        self.state = State::Clean;
    }

    /// Rolls the open transaction back. If that fails, the connection is closed, which has the same effect.
    pub(super) async fn roll_back(mut self) {
        if self.batch("ROLLBACK").await.is_ok() {
            self.left_transaction();
        }
    }
}

impl Deref for Pooled {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // If the server fell silent, an answer is still expected on the connection.
        let is_usable = !self.connection.client.is_closed() && !self.pool.heartbeat.is_silent();
        if self.state == State::Clean && is_usable {
            self.pool.lock_idle().push(Arc::clone(&self.connection));
        }
    }
}
