//! Monitors whether the server answers at all.
//!
//! A server that was cut off or stopped is silent, and a connection to it takes a minute to notice. So it is
//! asked for a sign of life on a dedicated connection, which no long statement can delay. While there is none,
//! nobody waits for the server: requests in progress end, and new ones are refused after a moment.
//!
//! The question is the server's time, which is also the time of the log.

use std::{pin::pin, sync::Arc, time::Duration};

use kernel::{CancellationToken, Deadline, Scope, Slot, SystemClock};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::{
    pool::Pool,
    schema,
    session::{self, back_off},
};
use crate::{
    error::LogError,
    time::{LogTime, ServerTimeSample},
};

/// How often to ask.
const EVERY: Duration = Duration::from_secs(1);
/// How long the answer may take. A server that is only busy answers within that time.
const WITHIN: Duration = Duration::from_secs(3);

/// How long a request to a silent server waits before it is refused.
const MOMENT: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HeartbeatState {
    Answering,
    Silent,
}

/// Whether the server answers. Clones refer to the same server.
#[derive(Clone, Debug)]
pub(super) struct Heartbeat(Slot<HeartbeatState>);

/// The server doesn't answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server is silent")]
pub(super) struct Silent;

impl Heartbeat {
    pub(super) fn new() -> Self {
        Self(Slot::new(HeartbeatState::Answering))
    }

    pub(super) fn is_silent(&self) -> bool {
        *self.0.read().state == HeartbeatState::Silent
    }

    /// Waits a moment for a silent server, so that callers that keep retrying don't spin.
    pub(super) async fn wait_a_moment(&self) -> Result<(), Silent> {
        let never = CancellationToken::new().scope();
        let moment = Deadline::after(&SystemClock::shared(), MOMENT);
        let answering = |state: &HeartbeatState| *state == HeartbeatState::Answering;
        let answered = self.0.wait_until(answering, moment, &never).await;
        answered.map(drop).map_err(|_| Silent)
    }

    /// Runs something until the server falls silent.
    pub(super) async fn while_answering<T>(&self, work: impl Future<Output = T>) -> Result<T, Silent> {
        let never = CancellationToken::new().scope();
        let silent = |state: &HeartbeatState| *state == HeartbeatState::Silent;
        let silence = self.0.wait_until(silent, Deadline::never(), &never);
        // Some futures are large, and would be on the stack several times.
        let work = Box::pin(work);
        tokio::select! {
            biased;
            done = work => Ok(done),
            _ = silence => Err(Silent),
        }
    }

    fn set(&self, state: HeartbeatState) {
        let seen = self.0.read();
        if *seen.state != state {
            // Only the monitoring task writes it.
            drop(self.0.transition(seen.generation, state));
        }
    }
}

/// Asks for signs of life until the log is closed.
pub(super) async fn look(pool: Arc<Pool>, log_time: LogTime, scope: Scope) {
    let mut connection = None;
    loop {
        match ask(&pool, connection.take()).await {
            Ok((client, time)) => {
                connection = Some(client);
                log_time.update(time);
                pool.heartbeat().set(HeartbeatState::Answering);
                pool.report_reachable();
            }
            Err(HeartbeatError::Silent) => report_silent(&pool),
            // A server that refuses connections does answer. Callers get its reason.
            Err(HeartbeatError::Refused(error)) => {
                pool.heartbeat().set(HeartbeatState::Answering);
                pool.report_unreachable(error);
            }
        }
        tokio::select! {
            _ = scope.wait() => return,
            () = back_off(EVERY) => {}
        }
    }
}

/// There was no sign of life.
enum HeartbeatError {
    Silent,
    Refused(LogError),
}

/// Asks, on the last connection if there is one.
async fn ask(pool: &Pool, connection: Option<Client>) -> Result<(Client, ServerTimeSample), HeartbeatError> {
    let client = match connection.filter(|client| !client.is_closed()) {
        Some(client) => client,
        None => connect(pool).await?,
    };
    match timeout(WITHIN, schema::time(&client)).await {
        Ok(Ok(time)) => Ok((client, time)),
        Ok(Err(error)) => Err(HeartbeatError::Refused(error)),
        Err(_) => Err(HeartbeatError::Silent),
    }
}

/// Connects. If there are several hosts, the first ones may be silent, so this takes as long as it takes; nobody
/// else waits for it that long.
async fn connect(pool: &Pool) -> Result<Client, HeartbeatError> {
    let mut connecting = pin!(session::connect(pool.server()));
    let (link, is_late) = match timeout(WITHIN, &mut connecting).await {
        Ok(link) => (link, false),
        Err(_) => {
            report_silent(pool);
            (connecting.await, true)
        }
    };
    match link {
        Ok(link) => {
            session::drive(link.driver, pool.tasks());
            Ok(link.client)
        }
        Err(_) if is_late => Err(HeartbeatError::Silent),
        Err(error) => Err(HeartbeatError::Refused(error.into())),
    }
}

fn report_silent(pool: &Pool) {
    if !pool.heartbeat().is_silent() {
        tracing::warn!("the log's database does not answer");
    }
    pool.heartbeat().set(HeartbeatState::Silent);
    pool.report_unreachable(LogError::Unreachable(Arc::new(Silent)));
}
