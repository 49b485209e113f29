//! No-op jobs on SQLite, against apalis-sqlite on the same disk.

use std::path::Path;

use anyhow::{Context as _, Result};
use protocol::JobIfInterrupted;

use super::load::{self, Load, Store};
use super::peers::{Apalis, drain_figures};
use crate::report::{Bar, Table};
use crate::turns::{LongContender, Rounds, in_long_turns};

const JOBS: usize = 4_000;
const ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};
const BAR: Bar = Bar::TimesFaster(10.0);

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Jobs on SQLite",
        "4,000 jobs that do nothing are submitted, and then so many workers are let at them. *Drain* is from that \
         moment until the last job has ended and that is on disk; *submit and drain* has the submission as well. Each of ours is submitted on its own, and is on disk when \
         that is answered; 64 tasks do it side by side. A job that may be repeated after a crash can be claimed before \
         its turn, together with others; one that may not is claimed when a worker is free, each on disk before it starts. The peer \
         is apalis-sqlite with its default configuration; it submits all jobs in bulk, its clock stops when the last job has started, and it runs \
         a job again whose worker has died. `FULL` is the setting under which what is written survives a power \
         failure, and ours. By default, apalis turns syncing off for one of its connections, and has `FULL` for the others.",
    );
    let apalis = match Apalis::get(tidelock) {
        Ok(apalis) => apalis,
        Err(error) => {
            table.not_measured(&format!("{error:#}"));
            return Ok(table);
        }
    };
    let runtime = load::runtime()?;
    for workers in [1, 4] {
        let ours = |if_interrupted| {
            let load = Load {
                jobs: JOBS,
                workers,
                if_interrupted,
            };
            let runtime = &runtime;
            move |directory: &Path| Ok(load.run(runtime, &Store::Sqlite(directory))?.figures())
        };
        let peer = |synchronous| {
            let apalis = &apalis;
            move |directory: &Path| drain(apalis, synchronous, directory, JOBS, workers)
        };
        let [ours_repeated, ours_once, full, default] = in_long_turns(
            ROUNDS,
            [
                LongContender::new("tidelock", ours(JobIfInterrupted::Repeat)),
                LongContender::new("tidelock", ours(JobIfInterrupted::Fail)),
                LongContender::new("apalis-sqlite, `FULL`", peer("full")),
                LongContender::new("apalis-sqlite, default", peer("default")),
            ],
        )?;
        let number = match workers {
            1 => "1 worker".to_owned(),
            several => format!("{several} workers"),
        };
        let repeated = format!("{number}, may be repeated");
        for (index, part) in ["drain", "submit and drain"].into_iter().enumerate() {
            let what = format!("{part}, {repeated}");
            table.compare_rates(&what, &ours_repeated[index], &full[index], BAR);
        }
        let what = format!("drain, {repeated}");
        table.compare_rates(&what, &ours_repeated[0], &default[0], Bar::None);
        let what = format!("drain, {number}, never repeated");
        table.compare_rates(&what, &ours_once[0], &full[0], Bar::Faster);
    }
    Ok(table)
}

pub(super) fn drain(
    apalis: &Apalis,
    synchronous: &str,
    directory: &Path,
    jobs: usize,
    workers: usize,
) -> Result<[f64; 2]> {
    let file = file_in(directory)?;
    let numbers = apalis.ask(&[
        "sqlite-drain",
        synchronous,
        &file,
        &jobs.to_string(),
        &workers.to_string(),
    ])?;
    drain_figures(&numbers)
}

pub(super) fn file_in(directory: &Path) -> Result<String> {
    let path = directory.join("apalis.sqlite3");
    let path = path.to_str().context("a path that is not UTF-8")?;
    Ok(format!("sqlite://{path}"))
}
