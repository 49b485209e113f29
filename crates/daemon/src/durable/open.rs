//! Opens the log, in a file or on a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Log, OpenError, PostgresOptions, SqliteOptions};
use kernel::Clock;

use crate::home::Home;

/// Where a daemon stores its log.
#[derive(Clone, Debug, Default)]
pub enum Database {
    /// In a file of its home.
    #[default]
    File,
    /// In a PostgreSQL database, which daemons on other machines may share.
    Postgres(DatabaseUrl),
}

impl Database {
    pub(crate) fn engine(&self) -> protocol::LogEngine {
        match self {
            Self::File => protocol::LogEngine::Sqlite,
            Self::Postgres(_) => protocol::LogEngine::Postgres,
        }
    }
}

/// The address of a database. It carries a password, so it is never shown.
#[derive(Clone)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address such as `postgres://user:password@host/database`.
    #[must_use]
    pub fn new(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DatabaseUrl(…)")
    }
}

/// Opens the log. Only the owner of the home may call this.
pub(crate) async fn open_log(
    home: &Home,
    database: &Database,
    clock: Arc<dyn Clock>,
) -> Result<Log, OpenError> {
    match database {
        Database::File => open_file(home.log_database(), clock),
        Database::Postgres(DatabaseUrl(url)) => Log::open_postgres(&PostgresOptions::new(url.clone())).await,
    }
}

/// Opens the log for what concerns only this machine. If the main log is on a server, that is a separate local file,
/// because other machines have no use for it and the server may be far away.
pub(crate) fn open_own_log(
    home: &Home,
    database: &Database,
    log: &Log,
    clock: Arc<dyn Clock>,
) -> Result<Log, OpenError> {
    match database {
        Database::File => Ok(log.clone()),
        Database::Postgres(_) => open_file(home.machine_database(), clock),
    }
}

fn open_file(path: PathBuf, clock: Arc<dyn Clock>) -> Result<Log, OpenError> {
    Log::open_sqlite(&SqliteOptions { path }, clock)
}
