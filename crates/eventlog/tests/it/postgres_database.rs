//! A place of its own on the test server for each test.
//!
//! The server is not started here: `cargo xtask test` does that, and says where it is. Without one, the tests that
//! want it report a skip.

use std::{
    collections::BTreeSet,
    future::Future,
    io::Write,
    net::SocketAddr,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use eventlog::{Log, PostgresOptions};
use tokio_postgres::{Config, NoTls, error::SqlState};

/// Says where the test server is.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Says where to report a skip.
const REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";

/// How often a schema is dropped before it counts as in use.
const DROP_TRIES: usize = 5;

/// A schema of its own, dropped with this.
pub(crate) struct Database {
    url: String,
    pub(crate) schema: String,
}

impl Database {
    /// `None` if there is no server; the skip is reported then.
    pub(crate) fn new() -> Option<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            skip(&format!("no Postgres server, since {URL_VARIABLE} is not set"));
            return None;
        };
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let schema = format!("test_{process}_{number}");
        let database = Self { url, schema };
        // A process of that number may have been killed before it could drop its own.
        database.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", database.schema));
        Some(database)
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        self.options_of(&self.url)
    }

    /// The same place, with the rights of another role.
    pub(crate) fn options_as(&self, role: &str) -> PostgresOptions {
        let (scheme, rest) = self.url.split_once("://").unwrap();
        let server = rest.split_once('@').map_or(rest, |(_, server)| server);
        self.options_of(&format!("{scheme}://{role}@{server}"))
    }

    /// The same place, by another way.
    pub(crate) fn options_through(&self, proxy: SocketAddr) -> PostgresOptions {
        let config = Config::from_str(&self.url).unwrap();
        let (user, database) = (config.get_user().unwrap(), config.get_dbname().unwrap());
        self.options_of(&format!("postgres://{user}@{proxy}/{database}"))
    }

    fn options_of(&self, url: &str) -> PostgresOptions {
        let joint = if url.contains('?') { '&' } else { '?' };
        PostgresOptions {
            schema: self.schema.clone(),
            // The name is how a test finds the connections of its logs.
            ..PostgresOptions::new(format!("{url}{joint}application_name={}", self.schema))
        }
    }

    pub(crate) async fn open(&self) -> Log {
        Log::open_postgres(&self.options()).await.unwrap()
    }

    /// A connection of the test's own.
    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let (client, driver) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(driver);
        client
    }

    /// Runs statements, and waits for them on the spot.
    pub(crate) fn run(&self, sql: &str) {
        let sql = format!("SET search_path TO {}; {sql}", self.schema);
        self.ask(async move |client| client.batch_execute(&sql).await.unwrap());
    }

    /// A log that is being closed may still be at a table, and the server breaks such a knot by refusing one of the
    /// two. If it was this one, it is done again; there is nobody else to wait for then.
    fn drop_schema(&self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        self.ask(async move |client| {
            for _ in 0..DROP_TRIES {
                match client.batch_execute(&sql).await {
                    Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                    done => return done.unwrap(),
                }
            }
            panic!("the schema of a test is in use");
        });
    }

    /// The one number that a query yields.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let (path, sql) = (format!("SET search_path TO {}", self.schema), sql.to_owned());
        self.ask(async move |client| {
            client.batch_execute(&path).await.unwrap();
            client.query_one(&sql, &[]).await.unwrap().get(0)
        })
    }

    /// How many connections its logs have, or those of them that match.
    pub(crate) fn connections(&self, matching: &str) -> i64 {
        self.number(&format!("SELECT count(*) {}", self.of_connections(matching)))
    }

    /// Ends connections of its logs. Returns how many.
    pub(crate) fn kill_connections(&self, matching: &str) -> i64 {
        let killed = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))";
        self.number(&format!("{killed} {}", self.of_connections(matching)))
    }

    fn of_connections(&self, matching: &str) -> String {
        format!(
            "FROM pg_stat_activity WHERE application_name = '{}' AND {matching}",
            self.schema
        )
    }

    /// Lets a time pass for whatever has a time in the database: it all moves into the past.
    pub(crate) fn pass(&self, time: Duration) {
        let by = format!("interval '{} microseconds'", time.as_micros());
        self.run(&format!(
            "UPDATE leases SET expires_at = expires_at - {by};
             UPDATE uploads SET expires_at = expires_at - {by};
             UPDATE blobs SET pinned_until = pinned_until - {by}"
        ));
    }

    /// Asks the server something in a thread of its own, so that it can be done anywhere, on drop too.
    fn ask<T: Send + 'static, F: Future<Output = T>>(
        &self,
        question: impl FnOnce(tokio_postgres::Client) -> F + Send + 'static,
    ) -> T {
        let url = self.url.clone();
        let asking = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let (client, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                let mut driver = std::pin::pin!(driver);
                tokio::select! {
                    answer = question(client) => answer,
                    ended = &mut driver => panic!("the test's own connection ended: {ended:?}"),
                }
            })
        });
        asking.join().unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drop_schema();
        }
    }
}

/// Reports that a test is skipped.
pub(crate) fn skip(why: &str) {
    static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let reason = format!("SKIPPED: {why}");
    let may_skip = std::env::var("CI").map_or(true, |ci| ci != "true");
    assert!(may_skip, "{reason}");
    // A test has a thread of its own name. One that asks several times is skipped once.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    if !SKIPPED.lock().unwrap().insert(test) {
        return;
    }
    println!("{reason}");
    if let Some(report) = std::env::var_os(REPORT_VARIABLE) {
        let mut report = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(report)
            .unwrap();
        report.write_all(format!("{reason}\n").as_bytes()).unwrap();
    }
}
