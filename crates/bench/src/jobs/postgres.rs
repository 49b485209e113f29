//! No-op jobs on Postgres, against graphile-worker, apalis-postgres and a bare loop.

use std::path::Path;

use anyhow::{Context as _, Result};
use eventlog::PostgresOptions;
use protocol::JobIfInterrupted;
use tokio::runtime::Runtime;

use super::load::{self, Load, Store};
use super::peers::{Apalis, GraphileWorker, drain_figures};
use super::pgbench::PgBench;
use super::postgres_database::{Database, Server};
use crate::report::{Bar, Table};
use crate::turns::{LongContender, Rounds, in_long_turns};

const JOBS: usize = 2_000;
const ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};
const BAR: Bar = Bar::TimesFaster(2.0);

/// Measures and fills a table; if something is missing, a row says so.
pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Jobs on Postgres",
        "2,000 such jobs on one server with its default settings, over a socket; each turn has a fresh database. graphile-worker and \
         apalis-postgres have their default configurations, submit all jobs in bulk, and their clocks stop when the last job has started. The bare loop is `pgbench` with as many clients: one \
         statement finds a row with `SKIP LOCKED` and marks it as done, each in a transaction of its own. It runs nothing, and has no leases, no \
         events and no results; it is shown, and not judged.",
    );
    let server = match Server::named() {
        Ok(server) => server,
        Err(error) => {
            table.skipped(&format!("{error:#}"));
            return Ok(table);
        }
    };
    Ok(table.filled(|table| fill(table, tidelock, &server)))
}

fn fill(table: &mut Table, tidelock: &Path, server: &Server) -> Result<()> {
    let runtime = load::runtime()?;
    let contest = Contest {
        server,
        runtime: &runtime,
        apalis: Apalis::get(tidelock)?,
        graphile: GraphileWorker::get(tidelock)?,
        pgbench: PgBench::get().context("`pgbench` is not here")?,
    };
    for workers in [1, 4, 16] {
        contest.fill(table, workers)?;
    }
    Ok(())
}

struct Contest<'a> {
    server: &'a Server,
    runtime: &'a Runtime,
    apalis: Apalis,
    graphile: GraphileWorker,
    pgbench: PgBench,
}

impl Contest<'_> {
    fn fill(&self, table: &mut Table, workers: usize) -> Result<()> {
        let [repeated, once, graphile, apalis, bare] = in_long_turns(
            ROUNDS,
            [
                LongContender::new("tidelock", |_| self.ours(workers, JobIfInterrupted::Repeat)),
                LongContender::new("tidelock", |_| self.ours(workers, JobIfInterrupted::Fail)),
                LongContender::new("graphile-worker", |_| {
                    self.peer(
                        |url, jobs, workers| self.graphile.ask(&[url, jobs, workers]),
                        workers,
                    )
                }),
                LongContender::new("apalis-postgres", |_| {
                    self.peer(
                        |url, jobs, workers| self.apalis.ask(&["postgres-drain", url, jobs, workers]),
                        workers,
                    )
                }),
                LongContender::new("bare `SKIP LOCKED`", |directory| {
                    let database = Database::make(self.server, self.runtime)?;
                    let drain = self.pgbench.drain(&database, directory, JOBS, workers)?;
                    Ok([drain, drain])
                }),
            ],
        )?;
        let number = match workers {
            1 => "1 worker".to_owned(),
            several => format!("{several} workers"),
        };
        for peer in [&graphile, &apalis] {
            let what = format!("drain, {number}, may be repeated");
            table.compare_rates(&what, &repeated[0], &peer[0], BAR);
            let what = format!("submit and drain, {number}, may be repeated");
            table.compare_rates(&what, &repeated[1], &peer[1], Bar::None);
            let what = format!("drain, {number}, never repeated");
            table.compare_rates(&what, &once[0], &peer[0], Bar::None);
        }
        let what = format!("drain, {number}, may be repeated");
        table.compare_rates(&what, &repeated[0], &bare[0], Bar::None);
        Ok(())
    }

    fn ours(&self, workers: usize, if_interrupted: JobIfInterrupted) -> Result<[f64; 2]> {
        let database = Database::make(self.server, self.runtime)?;
        let load = Load {
            jobs: JOBS,
            workers,
            if_interrupted,
        };
        let store = Store::Postgres(PostgresOptions::new(database.url()));
        Ok(load.run(self.runtime, &store)?.figures())
    }

    fn peer(
        &self,
        ask: impl FnOnce(&str, &str, &str) -> Result<Vec<f64>>,
        workers: usize,
    ) -> Result<[f64; 2]> {
        let database = Database::make(self.server, self.runtime)?;
        let numbers = ask(&database.url(), &JOBS.to_string(), &workers.to_string())?;
        drain_figures(&numbers)
    }
}
