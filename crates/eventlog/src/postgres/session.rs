//! Opens a connection and sets it up.

use std::{sync::Arc, time::Duration};

use kernel::{Deadline, SystemClock};
use tokio::{
    task::JoinHandle,
    time::{error::Elapsed, timeout},
};
use tokio_postgres::{Client, Error, SimpleQueryMessage, Socket, error::SqlState};

use super::{
    connection::Connection,
    failure,
    options::{CONNECT_WITHIN, Server, Target},
    refusal::Refusal,
    statements::Statements,
    tasks::Tasks,
    tls::{Encrypted, Encryption},
};
use crate::error::LogError;

/// Performs the I/O of a connection.
pub(super) type Driver = tokio_postgres::Connection<Socket, Encrypted>;

/// A bare connection. Nothing happens on it until the driver is polled.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) driver: Driver,
    pub(super) place: String,
    /// How it is protected, if it is.
    pub(super) encryption: Option<Encryption>,
}

/// What a session needs. The server ends a session that stops in the middle of a transaction, so that nobody
/// waits for it forever. Durable commits are durable even if the server's default says otherwise.
const SESSION: &str = "
    SET idle_in_transaction_session_timeout = '10s';
    SET lock_timeout = '15s';
    SET default_transaction_isolation = 'read committed';
    SET client_min_messages = warning;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// A connection couldn't be opened.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// It may succeed soon.
    Temporary(LogError),
    /// It won't succeed until somebody changes something.
    Lasting(LogError),
    /// The server responds, but must not be used.
    Refused(Refusal),
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        if failure::is_temporary(&error) {
            Self::Temporary(LogError::Unreachable(Arc::new(error)))
        } else if failure::is_lost(&error) {
            // The server closed the connection with a reason, for example a wrong password.
            Self::Lasting(LogError::Unreachable(Arc::new(error)))
        } else {
            Self::Lasting(error.into())
        }
    }
}

impl From<Elapsed> for ConnectError {
    fn from(elapsed: Elapsed) -> Self {
        Self::Temporary(LogError::Unreachable(Arc::new(elapsed)))
    }
}

impl From<ConnectError> for LogError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Temporary(error) | ConnectError::Lasting(error) => error,
            ConnectError::Refused(refusal) => Self::Unreachable(Arc::new(refusal)),
        }
    }
}

/// Waits before the next attempt.
pub(super) async fn back_off(pause: Duration) {
    Deadline::after(&SystemClock::shared(), pause).passed().await;
}

/// Opens a bare connection to the first suitable server.
pub(super) async fn connect(server: &Server) -> Result<Link, ConnectError> {
    let mut failed = Vec::new();
    for target in &server.targets {
        match connect_to(target).await {
            Ok(link) => return Ok(link),
            Err(error) => failed.push((target, error)),
        }
    }
    Err(combine(failed))
}

async fn connect_to(target: &Target) -> Result<Link, ConnectError> {
    let attempt = target.tls.attempt();
    let connected = timeout(target.within, target.config.connect(attempt.clone())).await?;
    let (client, driver) = connected.map_err(|error| match Refusal::of(&error, target, &attempt) {
        Some(refusal) => ConnectError::Refused(refusal),
        None => error.into(),
    })?;
    Ok(Link {
        client,
        driver,
        place: target.place.clone(),
        encryption: attempt.encryption(),
    })
}

/// Combines the errors of several servers. The result is temporary if one of them is.
fn combine(mut failed: Vec<(&Target, ConnectError)>) -> ConnectError {
    if failed.len() == 1
        && let Some((_, error)) = failed.pop()
    {
        return error;
    }
    let is_temporary = failed
        .iter()
        .any(|(_, error)| matches!(error, ConnectError::Temporary(_)));
    let told = failed
        .into_iter()
        .map(|(target, error)| format!("{}: {}", target.place, chain(&LogError::from(error))));
    let error = LogError::Unreachable(Arc::new(NoServer(told.collect::<Vec<_>>().join("; "))));
    if is_temporary {
        ConnectError::Temporary(error)
    } else {
        ConnectError::Lasting(error)
    }
}

/// None of several servers is suitable.
#[derive(Debug, thiserror::Error)]
#[error("none of its servers will do: {0}")]
struct NoServer(String);

/// The sources of an error. The error itself is reported by whoever uses this.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let told: Vec<_> = causes.map(ToString::to_string).collect();
    if told.is_empty() {
        return error.to_string();
    }
    told.join(": ")
}

/// Starts a task for the driver of a connection. It ends when the client is dropped or the connection is lost.
pub(super) fn drive(driver: Driver, tasks: &Tasks) {
    tasks.spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%error, "a connection to the log's database was lost");
        }
    });
}

/// A connection that is being opened.
pub(super) type Opening = JoinHandle<Result<Link, ConnectError>>;

/// Starts to open a connection.
pub(super) fn begin_to_connect(server: &Server, tasks: &Tasks) -> Opening {
    let to = server.clone();
    tasks.run(async move { connect(&to).await })
}

pub(super) async fn open(server: &Server, tasks: &Tasks) -> Result<Connection, ConnectError> {
    finish(begin_to_connect(server, tasks), server, tasks).await
}

/// Adds a connection that is being opened to the pool.
pub(super) async fn finish(
    opening: Opening,
    server: &Server,
    tasks: &Tasks,
) -> Result<Connection, ConnectError> {
    let link = opening
        .await
        .map_err(|_| ConnectError::Lasting(LogError::Closed))??;
    set_up(link, server, tasks).await?.connection
}

/// A session of a server: its process, and since when that server runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SessionId(pub(super) String);

impl SessionId {
    /// What to select to identify the session.
    pub(super) const COLUMN: &str = "pg_backend_pid() || ' since ' || pg_postmaster_start_time()";
}

/// A connection after its set-up, and the session that answered first.
pub(super) struct SetUp {
    pub(super) session: SessionId,
    pub(super) connection: Result<Connection, ConnectError>,
}

/// Sets up a bare connection for the pool, in one round trip.
pub(super) async fn set_up(link: Link, server: &Server, tasks: &Tasks) -> Result<SetUp, ConnectError> {
    let Link {
        client,
        driver,
        place,
        ..
    } = link;
    drive(driver, tasks);
    let who = format!("SELECT {}", SessionId::COLUMN);
    let search_path = format!("SET search_path TO \"{}\"", server.schema);
    let steps = async {
        tokio::join!(
            biased;
            client.simple_query(&who),
            async {
                let ((), (), statements) = tokio::try_join!(
                    biased;
                    client.batch_execute(&search_path),
                    client.batch_execute(SESSION),
                    Statements::prepare(&client),
                )?;
                Ok::<_, Error>(statements)
            },
        )
    };
    let (answer, statements) = timeout(CONNECT_WITHIN, steps).await?;
    let session = answer?.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    let connection = match statements {
        Ok(statements) => Ok(Connection { client, statements }),
        // A session of our own has only our statements.
        Err(error) if error.code() == Some(&SqlState::DUPLICATE_PSTATEMENT) => {
            Err(ConnectError::Refused(Refusal::TransactionPooling { place }))
        }
        Err(error) => Err(error.into()),
    };
    Ok(SetUp {
        session: SessionId(session.unwrap_or_default()),
        connection,
    })
}
