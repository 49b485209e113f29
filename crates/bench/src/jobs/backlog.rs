//! Whether a long queue is slower.

use std::path::Path;

use anyhow::Result;
use protocol::JobIfInterrupted;

use super::load::{self, Load, Store};
use super::peers::Apalis;
use super::sqlite;
use crate::measure::Measured;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, ratio, short};
use crate::turns::{LongContender, Rounds, in_long_turns};

const WORKERS: usize = 4;
const ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};
/// The rate at the longest queue has to be at least this share of that at the shortest.
const FLAT: f64 = 0.7;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Jobs: a long queue",
        "So many jobs that do nothing are queued, and then 4 workers are let at them. The ratio is the rate beside that of \
         the same contender at 1,000. apalis-sqlite has `FULL`, as we have; it is not asked for 100,000, which would take it an hour.",
        &["who", "queue", "rate", "beside 1,000", "bar", "met"],
    );
    let runtime = load::runtime()?;
    let ours = |jobs| {
        let load = Load {
            jobs,
            workers: WORKERS,
            if_interrupted: JobIfInterrupted::Repeat,
        };
        let runtime = &runtime;
        move |directory: &Path| Ok([load.run(runtime, &Store::Sqlite(directory))?.drain])
    };
    let [[small], [middle], [large]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", ours(1_000)),
            LongContender::new("tidelock", ours(8_000)),
            LongContender::new("tidelock", ours(100_000)),
        ],
    )?;
    row(&mut table, "1,000", &small, &small, None);
    row(&mut table, "8,000", &middle, &small, None);
    row(&mut table, "100,000", &large, &small, Some(FLAT));
    match Apalis::get(tidelock) {
        Ok(apalis) => {
            let peer = |jobs| {
                let apalis = &apalis;
                move |directory: &Path| {
                    let [drain, _] = sqlite::drain(apalis, "full", directory, jobs, WORKERS)?;
                    Ok([drain])
                }
            };
            let rounds = Rounds {
                counted: 2,
                warm_up: 0,
            };
            let [[small], [middle]] = in_long_turns(
                rounds,
                [
                    LongContender::new("apalis-sqlite", peer(1_000)),
                    LongContender::new("apalis-sqlite", peer(8_000)),
                ],
            )?;
            row(&mut table, "1,000", &small, &small, None);
            row(&mut table, "8,000", &middle, &small, None);
        }
        Err(error) => table.not_measured(&format!("{error:#}")),
    }
    Ok(table)
}

fn row(table: &mut Table, queue: &str, measured: &Measured, small: &Measured, bar: Option<f64>) {
    let rates: Vec<f64> = measured
        .samples
        .iter()
        .map(|nanoseconds| 1e9 / nanoseconds)
        .collect();
    let beside = ratio(&measured.samples, &small.samples);
    let verdict = bar.map_or(BarVerdict::NotAsked, |bar| BarVerdict::from(beside >= bar));
    let cells = vec![
        measured.name.to_owned(),
        queue.to_owned(),
        Figure::of(&rates).per_second(),
        short(beside),
        bar.map_or_else(String::new, |bar| format!("at least {bar}")),
    ];
    table.judged_row(cells, verdict);
}
