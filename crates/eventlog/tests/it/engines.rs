//! The engines that the suite runs on.

use std::{sync::Arc, time::Duration};

use eventlog::{Log, SqliteOptions};
use kernel::{Clock, ManualClock, SystemClock};
use tempfile::TempDir;

use crate::postgres_database::Database;

/// A log of some engine, with a second handle on the same data.
pub(crate) struct Engine {
    pub(crate) log: Log,
    pub(crate) other: Log,
    /// Lets a time pass for the leases of this engine.
    pub(crate) time: Time,
    _directory: Option<TempDir>,
}

/// How time passes for an engine: by hand where the clock is ours.
pub(crate) enum Time {
    Manual(Arc<ManualClock>),
    Database(Database),
}

impl Time {
    pub(crate) fn pass(&self, time: Duration) {
        match self {
            Self::Manual(clock) => clock.advance(time),
            Self::Database(database) => database.pass(time),
        }
    }
}

impl Engine {
    /// Lets so much time pass that no blob is kept only because it is new, and every open upload is given up.
    pub(crate) fn let_pins_expire(&self) {
        self.time.pass(Duration::from_secs(60 * 60));
    }
}

pub(crate) fn sqlite() -> Engine {
    let directory = TempDir::new().unwrap();
    let options = SqliteOptions {
        path: directory.path().join("log.sqlite3"),
    };
    let clock = ManualClock::new();
    let log = Log::open_sqlite(&options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    Engine {
        other: log.clone(),
        log,
        time: Time::Manual(clock),
        _directory: Some(directory),
    }
}

/// A log in a database, opened twice as by two daemons. `None` if there is no server to test with.
pub(crate) async fn postgres() -> Option<Engine> {
    let database = Database::new()?;
    Some(Engine {
        log: database.open().await,
        other: database.open().await,
        time: Time::Database(database),
        _directory: None,
    })
}

/// A log that runs on the machine's clock, for tests that need relaxed commits to be flushed.
pub(crate) fn sqlite_in_real_time(directory: &TempDir) -> Log {
    let options = SqliteOptions {
        path: directory.path().join("log.sqlite3"),
    };
    Log::open_sqlite(&options, SystemClock::shared()).unwrap()
}

/// Makes a test of a check for each engine.
macro_rules! on_every_engine {
    ($($check:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(crate::engines::sqlite()).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $check() {
                    if let Some(engine) = crate::engines::postgres().await {
                        super::$check(engine).await;
                    }
                }
            )+
        }
    };
}
pub(crate) use on_every_engine;
