//! The connections of a log: a few, each used by one at a time, made again when they are lost.
//!
//! 1. A connection comes back to the pool only when no transaction is open on it. One that was given up half-way is
//!    closed, and the server takes back what was open.
//! 2. Work is done again only when it is known that nothing of it was made, or when it finds out itself, and at most
//!    [`ATTEMPTS`] times.
//! 3. A server that is away for a moment is waited for, by everybody: it is started afresh, or another one takes its place.
//!    Once it has been away for longer, nobody waits.

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
    options::{PostgresOptions, Server},
    pulse::{Pulse, Silent},
    session::{self, ConnectError, Opening},
    tasks::Tasks,
};
use crate::{error::LogError, store::Health};

/// How often some work is tried that failed without a trace.
const ATTEMPTS: u32 = 4;
/// For how long a server that is away is waited for, counted from when it was first missed. Whoever asks for something waits
/// no longer than that, and a lease outlasts it.
const WAITED_OUT: Duration = Duration::from_secs(8);
/// The pauses between attempts to connect; the last one is also that between those that follow.
const CONNECT_PAUSES: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

pub(super) struct Pool {
    server: Server,
    tasks: Tasks,
    /// One permit per connection. Whoever finds none waits in line.
    permits: Arc<Semaphore>,
    /// Guards the connections that nobody uses; held for a push or a pop.
    idle: Mutex<Vec<Arc<Connection>>>,
    health: Slot<Health>,
    /// Until when a server that is away is waited for.
    waited_for: Slot<Option<Deadline>>,
    pulse: Pulse,
}

/// What some work is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    Read,
    Write,
}

impl Purpose {
    /// Some work was given up half-way: what it has written may have been made.
    fn given_up(self, silent: Silent) -> LogError {
        match self {
            Self::Read => LogError::Unreachable(Arc::new(silent)),
            Self::Write => LogError::OutcomeUnknown(Arc::new(silent)),
        }
    }
}

impl Pool {
    /// A pool that has its first connection.
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
            waited_for: Slot::new(None),
            pulse: Pulse::new(),
        })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The server gave no sign of life.
    pub(super) fn found_away(&self, error: LogError) {
        self.note(Purpose::Read, error);
    }

    pub(super) fn health(&self) -> Health {
        (*self.health.read().state).clone()
    }

    /// Does some work that only reads.
    pub(super) async fn read<T, F, W>(self: &Arc<Self>, work: F) -> Result<T, LogError>
    where
        F: Fn(Pooled) -> W,
        W: Future<Output = Result<T, Failure>>,
    {
        self.run(Purpose::Read, work).await
    }

    /// Does some work that writes: how it ends says whether the log takes writes.
    pub(super) async fn write<T, E, F, W>(self: &Arc<Self>, work: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: Fn(Pooled) -> W,
        W: Future<Output = Result<T, Failure<E>>>,
    {
        self.run(Purpose::Write, work).await
    }

    /// Does some work that cannot be done again from the start.
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
        if let Err(silent) = self.pulse.awaited().await {
            return Err(LogError::Unreachable(Arc::new(silent)).into());
        }
        let (mut attempt, mut unclear) = (0, None);
        loop {
            attempt += 1;
            let taken = self.pulse.while_answering(self.take()).await;
            let failed = match taken.unwrap_or_else(|silent| Err(LogError::Unreachable(Arc::new(silent)))) {
                Err(error) => Failure::Log(error),
                Ok(pooled) => match self.pulse.while_answering(work(pooled)).await {
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
                    self.before_another_attempt(&error, is_elsewhere(&error));
                    continue;
                }
                Failure::Unclear(error) if attempt < ATTEMPTS => {
                    self.before_another_attempt(&error, true);
                    unclear = Some(error);
                    continue;
                }
                Failure::Again(error) => error.into(),
                Failure::Unclear(error) => LogError::OutcomeUnknown(error),
                Failure::Log(error) => error,
            };
            let error = self.note(purpose, error);
            return Err(match (unclear, error) {
                // An earlier attempt may have been made.
                (Some(unclear), LogError::Unreachable(_)) => LogError::OutcomeUnknown(unclear).into(),
                (_, error) => error.into(),
            });
        }
    }

    fn before_another_attempt(&self, error: &dyn fmt::Display, is_lost: bool) {
        tracing::debug!(%error, "some work on the log's database is done again");
        if is_lost {
            // The others are most likely lost as well, and have not noticed yet, or lead to the same server.
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
            // Whoever needs one makes it, and is told.
            Err(error) => tracing::debug!(error = %LogError::from(error), "no spare connection was made"),
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
                    self.reached();
                    return Ok(connection);
                }
                Err(error) => error,
            };
            match &error {
                ConnectError::Temporary(_) if self.is_waited_for() => {
                    session::back_off(pauses.next().unwrap_or(longest)).await;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Whether a server that was just missed is worth another try.
    fn is_waited_for(&self) -> bool {
        let seen = self.waited_for.read();
        if let Some(until) = &*seen.state {
            return !until.has_passed();
        }
        let until = Deadline::after(&SystemClock::shared(), WAITED_OUT);
        // Refused only if somebody else has just missed it as well.
        drop(self.waited_for.transition(seen.generation, Some(until)));
        true
    }

    /// The server answers again. Whether it takes writes is another question.
    pub(super) fn reached(&self) {
        let seen = self.waited_for.read();
        if seen.state.is_some() {
            // Refused only if somebody else has just found out something newer.
            drop(self.waited_for.transition(seen.generation, None));
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

    /// Remembers an error that means that the log takes no writes.
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
            // Refused only if somebody else has just found out something newer.
            drop(self.health.transition(seen.generation, health));
        }
    }
}

/// Whether the way to another connection, or to another server, is worth looking for.
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

/// A connection in use. It goes back when it is dropped, unless a transaction is open on it.
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
    /// The schema that holds the tables.
    pub(super) fn schema(&self) -> &str {
        &self.pool.server.schema
    }

    /// Says that a transaction is about to be opened.
    pub(super) fn enter_transaction(&mut self) {
        self.state = State::InTransaction;
    }

    /// Says that `COMMIT` was answered, so that no transaction is open any more, whatever the answer was.
    pub(super) fn left_transaction(&mut self) {
        self.state = State::Clean;
    }

    /// Takes the open transaction back. A connection on which that fails is closed, which does the same.
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
        // Of a server that fell silent an answer is still awaited on it.
        let is_usable = !self.connection.client.is_closed() && !self.pool.pulse.is_silent();
        if self.state == State::Clean && is_usable {
            self.pool.lock_idle().push(Arc::clone(&self.connection));
        }
    }
}
