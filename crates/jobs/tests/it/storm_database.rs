//! A schema of its own on the test server.
//!
//! The server is not started here: `cargo xtask test` does that, and says where it is. Without one, the tests that
//! want it report a skip.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use eventlog::PostgresOptions;
use tokio_postgres::{NoTls, error::SqlState};

/// Says where the test server is.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Says where to report a skip.
const REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";

/// A schema, dropped with this.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
}

impl Database {
    /// `None` if there is no server; the skip is reported then.
    pub(crate) fn new() -> Option<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            skip();
            return None;
        };
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let schema = format!("storm_{process}_{number}");
        let database = Self { url, schema };
        // A process of that number may have been killed before it could drop its own.
        database.drop_schema();
        Some(database)
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions {
            schema: self.schema.clone(),
            ..PostgresOptions::new(self.url.clone())
        }
    }

    /// It is done in a thread of its own, so that it can be done anywhere, on drop too.
    fn drop_schema(&self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let url = self.url.clone();
        let asking = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let (client, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                // A log that is being closed may still be at a table. The server breaks such a knot by refusing one of
                // the two, and then there is nobody else to wait for.
                let dropping = async {
                    match client.batch_execute(&sql).await {
                        Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                            client.batch_execute(&sql).await.unwrap();
                        }
                        done => done.unwrap(),
                    }
                };
                tokio::select! {
                    () = dropping => {}
                    ended = driver => panic!("the test's own connection ended: {ended:?}"),
                }
            });
        });
        asking.join().unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drop_schema();
        }
    }
}

fn skip() {
    let reason = format!("SKIPPED: no Postgres server, since {URL_VARIABLE} is not set");
    let may_skip = std::env::var("CI").map_or(true, |ci| ci != "true");
    assert!(may_skip, "{reason}");
    println!("{reason}");
    if let Some(report) = std::env::var_os(REPORT_VARIABLE) {
        let report = OpenOptions::new().append(true).create(true).open(report);
        report
            .unwrap()
            .write_all(format!("{reason}\n").as_bytes())
            .unwrap();
    }
}
