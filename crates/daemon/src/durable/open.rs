//! Where the log is, and how it is opened.

use std::fmt;
use std::sync::Arc;

use eventlog::{Log, OpenError, PostgresOptions, SqliteOptions};
use kernel::Clock;

use crate::home::Home;

/// Where a daemon keeps its log.
#[derive(Clone, Debug, Default)]
pub enum Database {
    /// In a file of its home.
    #[default]
    File,
    /// In a PostgreSQL database, which daemons of other machines may share.
    Postgres(DatabaseUrl),
}

impl Database {
    pub(crate) fn engine(&self) -> api::LogEngine {
        match self {
            Self::File => api::LogEngine::Sqlite,
            Self::Postgres(_) => api::LogEngine::Postgres,
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
        Database::File => {
            let options = SqliteOptions {
                path: home.log_database(),
            };
            Log::open_sqlite(&options, clock)
        }
        Database::Postgres(DatabaseUrl(url)) => Log::open_postgres(&PostgresOptions::new(url.clone())).await,
    }
}
