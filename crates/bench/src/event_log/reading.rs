//! Reading a page of a long stream: from the middle and from the start.

use std::{path::Path, time::Instant};

use anyhow::{Result, ensure};
use eventlog::{Log, Sequence};
use tokio::runtime::Runtime;

use super::{
    files,
    rows::{EVENT_BYTES, Writer, stream},
};
use crate::{
    report::{Bar, Table},
    statistics::nanoseconds,
    turns::{LongContender, Rounds, in_long_turns, scratch},
};

const EVENTS: usize = 1_000_000;
const EVENTS_PER_COMMIT: usize = 1000;
const PAGE: u32 = 256;
/// How many pages are read in a turn, each after the last.
const PAGES_PER_TURN: u64 = 50;
const ROUNDS: Rounds = Rounds {
    counted: 51,
    warm_up: 3,
};

/// Measures and puts the results into a table.
pub(crate) fn measure() -> Result<Table> {
    let runtime = files::runtime()?;
    let directory = scratch()?;
    let log = long_log(&runtime, directory.path(), EVENTS)?;
    let read = |from: u64| pages(&runtime, &log, from, PAGES_PER_TURN);
    let [[middle], [start]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("from the middle", |_| read(EVENTS as u64 / 2)),
            LongContender::new("from the start", |_| read(0)),
        ],
    )?;
    files::close(log, directory.path())?;
    let mut table = Table::of_ratios(
        "The log: reading a long stream",
        "One stream with 1,000,000 events of 200 bytes, made in relaxed commits of 1,000 events. A page is 256 events \
         in one `read`; the pages of a turn follow each other, and the file is in the page cache. The peer is the log \
         itself at the start of the stream.",
    );
    table.compare("a page from the middle", &middle, &start, Bar::WithinTimes(2.0));
    Ok(table)
}

/// A log with one stream of so many events.
fn long_log(runtime: &Runtime, directory: &Path, events: usize) -> Result<Log> {
    let log = files::open(directory)?;
    let mut writer = Writer::new(stream(0)?, EVENT_BYTES);
    runtime.block_on(async {
        for _ in 0..events / EVENTS_PER_COMMIT {
            writer.write_relaxed(&log, EVENTS_PER_COMMIT).await?;
        }
        // A durable commit is on disk with everything before it.
        writer.write(&log, 0).await
    })?;
    Ok(log)
}

/// The time for one page.
fn pages(runtime: &Runtime, log: &Log, from: u64, pages: u64) -> Result<[f64; 1]> {
    let stream = stream(0)?;
    runtime.block_on(async {
        let began = Instant::now();
        for page in 0..pages {
            let after = from + page * u64::from(PAGE);
            let read = log.read(&stream, Sequence::from_u64(after), PAGE).await?;
            let places = read.events.first().zip(read.events.last());
            let places = places.map(|(first, last)| (first.sequence.get(), last.sequence.get()));
            ensure!(
                places == Some((after + 1, after + u64::from(PAGE))),
                "read {places:?} after {after}"
            );
        }
        Ok([nanoseconds(began.elapsed()) / pages as f64])
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn pages_are_read_from_everywhere_and_a_page_that_is_not_full_is_an_error() {
        let (runtime, directory) = (files::runtime().unwrap(), TempDir::new().unwrap());
        let log = long_log(&runtime, directory.path(), 2 * EVENTS_PER_COMMIT).unwrap();
        for (from, is_whole) in [(0, true), (1000, true), (1500, false), (2000, false)] {
            assert_eq!(pages(&runtime, &log, from, 2).is_ok(), is_whole, "{from}");
        }
        files::close(log, directory.path()).unwrap();
    }
}
