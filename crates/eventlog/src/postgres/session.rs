//! Opening a connection and setting it up.

use std::{sync::Arc, time::Duration};

use kernel::{Deadline, SystemClock};
use tokio::time::{error::Elapsed, timeout};
use tokio_postgres::{Client, Error, NoTls, Socket, tls::NoTlsStream};

use super::{
    connection::Connection,
    failure,
    options::{CONNECT_WITHIN, Server},
    statements::Statements,
    tasks::Tasks,
};
use crate::error::LogError;

/// What does the input and output of a connection.
pub(super) type Driver = tokio_postgres::Connection<Socket, NoTlsStream>;

/// What a session needs. A writer that stops in the middle of a transaction is thrown out by the server, so that
/// nobody waits for it for ever. Durable commits are durable even where the server's default says otherwise.
const SESSION: &str = "
    SET idle_in_transaction_session_timeout = '10s';
    SET lock_timeout = '15s';
    SET default_transaction_isolation = 'read committed';
    SET client_min_messages = warning;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// No connection could be made.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// It may go well soon.
    Temporary(LogError),
    /// It will not until somebody does something.
    Lasting(LogError),
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        if failure::is_temporary(&error) {
            Self::Temporary(LogError::Unreachable(Arc::new(error)))
        } else if failure::is_lost(&error) {
            // The server hung up on us with a reason, for example a wrong password.
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
        }
    }
}

/// Gives the server some time before the next attempt.
pub(super) async fn back_off(pause: Duration) {
    Deadline::after(&SystemClock::shared(), pause).passed().await;
}

/// Opens a bare connection. Nothing happens on it until the driver is polled.
pub(super) async fn connect(server: &Server) -> Result<(Client, Driver), ConnectError> {
    Ok(timeout(CONNECT_WITHIN, server.config.connect(NoTls)).await??)
}

/// Leaves the driver of a connection to a task, which ends when the client is dropped or the connection is lost.
pub(super) fn drive(driver: Driver, tasks: &Tasks) {
    tasks.spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%error, "a connection to the log's database was lost");
        }
    });
}

/// Opens a connection for the pool.
pub(super) async fn open(server: &Server, tasks: &Tasks) -> Result<Connection, ConnectError> {
    let config = server.config.clone();
    let connecting = tasks.run(async move { timeout(CONNECT_WITHIN, config.connect(NoTls)).await });
    let (client, driver) = connecting
        .await
        .map_err(|_| ConnectError::Lasting(LogError::Closed))???;
    drive(driver, tasks);
    let search_path = format!("SET search_path TO \"{}\"", server.schema);
    let set_up = async {
        let ((), (), statements) = tokio::try_join!(
            biased;
            client.batch_execute(&search_path),
            client.batch_execute(SESSION),
            Statements::prepare(&client),
        )?;
        Ok::<_, Error>(statements)
    };
    let statements = timeout(CONNECT_WITHIN, set_up).await??;
    Ok(Connection { client, statements })
}
