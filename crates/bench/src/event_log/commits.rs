//! Durable commits of many writers, against loops that write the same rows with SQLite.

use std::{path::Path, time::Instant};

use anyhow::{Result, ensure};
use tokio::{runtime::Runtime, task::JoinSet};

use super::{
    files, plain_sqlite,
    rows::{EVENT_BYTES, Writer, stream},
};
use crate::{
    report::{Bar, Table},
    statistics::nanoseconds,
    turns::{LongContender, Rounds, in_long_turns},
};

const COMMITTERS: usize = 64;
const COMMITS_PER_COMMITTER: usize = 200;
const ROUNDS: Rounds = Rounds {
    counted: 11,
    warm_up: 1,
};
/// How many commits the batching peer puts into a transaction.
const BATCH: u64 = 100;

pub(crate) fn measure() -> Result<Table> {
    let runtime = files::runtime()?;
    let work = Work {
        runtime: &runtime,
        committers: COMMITTERS,
        commits_per_committer: COMMITS_PER_COMMITTER,
    };
    let [[ours], [one_by_one], [batched], [grouped]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", |directory| work.ours(directory)),
            LongContender::new("one transaction a commit", |directory| work.plain(directory, 1)),
            LongContender::new("100 commits a transaction", |directory| {
                work.plain(directory, BATCH)
            }),
            LongContender::new("64 commits a transaction", |directory| {
                work.plain(directory, COMMITTERS as u64)
            }),
        ],
    )?;
    let mut table = Table::of_ratios(
        "The log: durable commits",
        "A commit is one head update and one event of 200 bytes, and is on disk when it is answered (WAL, \
         `synchronous=FULL`). Ours come from 64 tasks, each with a stream of its own, that wait for one commit before \
         they make the next; the log puts what waits into one transaction. The peers are loops on one thread that \
         write the same rows with the same SQLite library into a file that the log has made: they check no version, \
         answer nobody, and know their next commits beforehand. 64 to a transaction is the most that 64 writers \
         who wait can get. Each turn has a fresh file and 12,800 commits.",
    );
    let what = "commits, 64 at a time";
    table.compare_rates(what, &ours, &one_by_one, Bar::TimesFaster(10.0));
    table.compare_rates(what, &ours, &batched, Bar::WithinTimes(2.0));
    table.compare_rates(what, &ours, &grouped, Bar::None);
    Ok(table)
}

struct Work<'a> {
    runtime: &'a Runtime,
    committers: usize,
    commits_per_committer: usize,
}

impl Work<'_> {
    fn ours(&self, directory: &Path) -> Result<[f64; 1]> {
        let log = files::open(directory)?;
        let writers = self.make_streams(&log)?;
        let began = Instant::now();
        self.runtime.block_on(async {
            let mut committers = JoinSet::new();
            for mut writer in writers {
                let (log, commits) = (log.clone(), self.commits_per_committer);
                committers.spawn(async move {
                    for _ in 0..commits {
                        writer.write(&log, 1).await?;
                    }
                    anyhow::Ok(())
                });
            }
            committers.join_all().await.into_iter().collect::<Result<()>>()
        })?;
        let took = began.elapsed();
        files::close(log, directory)?;
        self.per_commit(directory, nanoseconds(took))
    }

    fn plain(&self, directory: &Path, commits_per_transaction: u64) -> Result<[f64; 1]> {
        let log = files::open(directory)?;
        self.make_streams(&log)?;
        files::close(log, directory)?;
        let took = plain_sqlite::write(directory, self.commits(), commits_per_transaction)?;
        self.per_commit(directory, nanoseconds(took))
    }

    fn make_streams(&self, log: &eventlog::Log) -> Result<Vec<Writer>> {
        let mut writers = Vec::with_capacity(self.committers);
        for number in 0..self.committers {
            let mut writer = Writer::new(stream(number)?, EVENT_BYTES);
            self.runtime.block_on(writer.write(log, 0))?;
            writers.push(writer);
        }
        Ok(writers)
    }

    /// The time per commit, provided that all of them are in the file.
    fn per_commit(&self, directory: &Path, nanoseconds_in_all: f64) -> Result<[f64; 1]> {
        let events = plain_sqlite::count_events(directory)?;
        ensure!(
            events == self.commits(),
            "{events} events of {} were written",
            self.commits()
        );
        Ok([nanoseconds_in_all / self.commits() as f64])
    }

    fn commits(&self) -> u64 {
        (self.committers * self.commits_per_committer) as u64
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// All rows of a file, except for the times and the assignment of versions to commits.
    fn rows(directory: &Path) -> Vec<String> {
        let connection = rusqlite::Connection::open(files::path_in(directory)).unwrap();
        let queries = [
            "SELECT key || value FROM meta",
            "SELECT id || kind || status || last_sequence || body FROM streams ORDER BY id",
            "SELECT stream || ' ' || sequence || kind || body FROM events ORDER BY stream, sequence",
        ];
        let read = |query| {
            let mut statement = connection.prepare(query).unwrap();
            let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            rows.map(Result::unwrap).collect::<Vec<_>>()
        };
        queries.into_iter().flat_map(read).collect()
    }

    #[test]
    fn everybody_writes_the_same_rows() {
        let runtime = files::runtime().unwrap();
        let work = Work {
            runtime: &runtime,
            committers: 3,
            commits_per_committer: 7,
        };
        let written = |turn: &dyn Fn(&Path) -> Result<[f64; 1]>| {
            let directory = TempDir::new().unwrap();
            assert!(turn(directory.path()).unwrap()[0] > 0.0);
            rows(directory.path())
        };
        let ours = written(&|directory| work.ours(directory));
        assert_eq!(ours.len(), 1 + 3 + 3 * 7);
        assert_eq!(written(&|directory| work.plain(directory, 1)), ours);
        assert_eq!(written(&|directory| work.plain(directory, 5)), ours);
    }
}
