//! Whether the server answers at all.
//!
//! A server that was cut off or stopped is silent, and a connection to it takes a minute to notice. So it is asked for a
//! sign of life, on a connection that has no other use: a statement that takes long does not delay it. While there is none,
//! nobody waits for the server: what is under way ends, and what comes is refused at once.
//!
//! The sign is the time that the server has, which is the one that counts.

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
    time::{LogTime, SaidTime},
};

/// How often a sign of life is asked for.
const EVERY: Duration = Duration::from_secs(1);
/// How long it may take. A server that is only busy answers within that.
const WITHIN: Duration = Duration::from_secs(3);

/// How long somebody who wants something from a silent server waits before that is refused.
const MOMENT: Duration = Duration::from_millis(250);

/// What is known of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sign {
    Answering,
    Silent,
}

/// Clones are about the same server.
#[derive(Clone, Debug)]
pub(super) struct Pulse(Slot<Sign>);

/// The server does not answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server is silent")]
pub(super) struct Silent;

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Slot::new(Sign::Answering))
    }

    pub(super) fn is_silent(&self) -> bool {
        *self.0.read().state == Sign::Silent
    }

    /// Waits a moment for a server that is silent. Whoever tries again and again does not do so all the time then.
    pub(super) async fn awaited(&self) -> Result<(), Silent> {
        let never = CancellationToken::new().scope();
        let moment = Deadline::after(&SystemClock::shared(), MOMENT);
        let answering = |sign: &Sign| *sign == Sign::Answering;
        let answered = self.0.wait_until(answering, moment, &never).await;
        answered.map(drop).map_err(|_| Silent)
    }

    /// Does something, unless the server falls silent meanwhile.
    pub(super) async fn while_answering<T>(&self, work: impl Future<Output = T>) -> Result<T, Silent> {
        let never = CancellationToken::new().scope();
        let silent = |sign: &Sign| *sign == Sign::Silent;
        let silence = self.0.wait_until(silent, Deadline::never(), &never);
        // Some of it is large, and would be on the stack several times over.
        let work = Box::pin(work);
        tokio::select! {
            biased;
            done = work => Ok(done),
            _ = silence => Err(Silent),
        }
    }

    fn set(&self, sign: Sign) {
        let seen = self.0.read();
        if *seen.state != sign {
            // Only the one that looks writes it.
            drop(self.0.transition(seen.generation, sign));
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
                log_time.said(time);
                pool.pulse().set(Sign::Answering);
                pool.reached();
            }
            Err(NoSign::Silent) => fell_silent(&pool),
            // A server that refuses connections answers; whoever wants something from it is told why not.
            Err(NoSign::Refused(error)) => {
                pool.pulse().set(Sign::Answering);
                pool.found_away(error);
            }
        }
        tokio::select! {
            _ = scope.wait() => return,
            () = back_off(EVERY) => {}
        }
    }
}

/// There was no sign of life.
enum NoSign {
    Silent,
    Refused(LogError),
}

/// Asks, on the connection of the last time if there is one.
async fn ask(pool: &Pool, connection: Option<Client>) -> Result<(Client, SaidTime), NoSign> {
    let client = match connection.filter(|client| !client.is_closed()) {
        Some(client) => client,
        None => connect(pool).await?,
    };
    match timeout(WITHIN, schema::time(&client)).await {
        Ok(Ok(time)) => Ok((client, time)),
        Ok(Err(error)) => Err(NoSign::Refused(error)),
        Err(_) => Err(NoSign::Silent),
    }
}

/// Connects. Where there are several hosts the first ones may be silent, so this takes as long as it takes; nobody else waits
/// for it that long.
async fn connect(pool: &Pool) -> Result<Client, NoSign> {
    let mut connecting = pin!(session::connect(pool.server()));
    let (link, is_late) = match timeout(WITHIN, &mut connecting).await {
        Ok(link) => (link, false),
        Err(_) => {
            fell_silent(pool);
            (connecting.await, true)
        }
    };
    match link {
        Ok(link) => {
            session::drive(link.driver, pool.tasks());
            Ok(link.client)
        }
        Err(_) if is_late => Err(NoSign::Silent),
        Err(error) => Err(NoSign::Refused(error.into())),
    }
}

fn fell_silent(pool: &Pool) {
    if !pool.pulse().is_silent() {
        tracing::warn!("the log's database does not answer");
    }
    pool.pulse().set(Sign::Silent);
    pool.found_away(LogError::Unreachable(Arc::new(Silent)));
}
