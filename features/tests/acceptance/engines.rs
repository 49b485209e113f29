//! The databases that scenarios run on.

use std::{
    fs::OpenOptions,
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use eventlog::{Log, PostgresOptions, SqliteOptions};
use kernel::{Clock, SystemClock};
use tempfile::TempDir;

/// Says where the test server is; `cargo xtask test` starts one.
const POSTGRES_URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Says where to report a skip.
const SKIP_REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";

/// A log, and a second handle on it that stands for another process.
pub(crate) struct Database {
    pub(crate) log: Log,
    pub(crate) other: Log,
    _directory: TempDir,
}

impl Database {
    pub(crate) async fn open(engine: &str) -> Self {
        Self::open_at(engine, SystemClock::shared()).await
    }

    /// A database whose time is that of the clock, if it is not a server that has its own.
    pub(crate) async fn open_at(engine: &str, clock: Arc<dyn Clock>) -> Self {
        let directory = TempDir::new().unwrap();
        let (log, other) = match engine {
            "SQLite" => {
                let path = directory.path().join("log.sqlite3");
                let log = Log::open_sqlite(&SqliteOptions { path }, clock).unwrap();
                (log.clone(), log)
            }
            "Postgres" => {
                let options = postgres_options();
                (
                    Log::open_postgres(&options).await.unwrap(),
                    Log::open_postgres(&options).await.unwrap(),
                )
            }
            other => panic!("there is no engine {other}"),
        };
        Self {
            log,
            other,
            _directory: directory,
        }
    }
}

/// A schema of its own on the test server, which is thrown away as a whole.
fn postgres_options() -> PostgresOptions {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var(POSTGRES_URL_VARIABLE).unwrap();
    let schema = format!(
        "features_{}_{}",
        std::process::id(),
        MADE.fetch_add(1, Ordering::Relaxed)
    );
    PostgresOptions {
        schema,
        ..PostgresOptions::new(url)
    }
}

/// Whether there is a Postgres to run on. If not, that is reported as a skip.
pub(crate) fn postgres_is_here() -> bool {
    let is_here = std::env::var_os(POSTGRES_URL_VARIABLE).is_some();
    if !is_here {
        let reason = format!("SKIPPED: scenarios on Postgres, because {POSTGRES_URL_VARIABLE} is not set\n");
        print!("{reason}");
        if let Some(report) = std::env::var_os(SKIP_REPORT_VARIABLE) {
            let mut report = OpenOptions::new().append(true).create(true).open(report).unwrap();
            report.write_all(reason.as_bytes()).unwrap();
        }
    }
    is_here
}
