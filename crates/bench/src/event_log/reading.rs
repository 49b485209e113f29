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
/// How many consecutive pages are read in a turn.
const PAGES_PER_TURN: u64 = 15;
const MIXED_STREAMS: usize = 64;
const MIXED_EVENTS: usize = 5000;
const ROUNDS: Rounds = Rounds {
    counted: 51,
    warm_up: 3,
};

pub(crate) fn measure() -> Result<Table> {
    let runtime = files::runtime()?;
    let (long_directory, mixed_directory) = (scratch()?, scratch()?);
    let long = long_log(&runtime, long_directory.path(), EVENTS)?;
    let mixed = mixed_log(&runtime, mixed_directory.path(), MIXED_STREAMS, MIXED_EVENTS)?;
    let read_long = |from| pages(&runtime, &long, 0, from, PAGES_PER_TURN);
    let [[middle], [one_of_many], [start]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("from the middle", |_| read_long(EVENTS as u64 / 2)),
            LongContender::new("one of many", |_| {
                pages(&runtime, &mixed, MIXED_STREAMS / 2, 0, PAGES_PER_TURN)
            }),
            LongContender::new("from its start", |_| read_long(0)),
        ],
    )?;
    files::close(long, long_directory.path())?;
    files::close(mixed, mixed_directory.path())?;
    let mut table = Table::of_ratios(
        "The log: reading a long stream",
        "One stream with 1,000,000 events of 200 bytes, made in relaxed commits of 1,000 events. A page is 256 events \
         in one `read`; the pages of a turn follow each other, and the file is in the page cache. The peer is the log \
         itself at the start of that stream. The stream among 64 has 5,000 events, in a log of its own, whose writers \
         took turns with one event each.",
    );
    table.compare("a page from the middle", &middle, &start, Bar::WithinTimes(2.0));
    table.compare("a page of one stream among 64", &one_of_many, &start, Bar::None);
    Ok(table)
}

fn long_log(runtime: &Runtime, directory: &Path, events: usize) -> Result<Log> {
    let log = files::open(directory)?;
    let mut writer = Writer::new(stream(0)?, EVENT_BYTES);
    runtime.block_on(async {
        for _ in 0..events / EVENTS_PER_COMMIT {
            writer.write_relaxed(&log, EVENTS_PER_COMMIT).await?;
        }
        // When a durable commit is on disk, so is everything before it.
        writer.write(&log, 0).await
    })?;
    Ok(log)
}

fn mixed_log(runtime: &Runtime, directory: &Path, streams: usize, events: usize) -> Result<Log> {
    let log = files::open(directory)?;
    let mut writers = (0..streams)
        .map(|number| Ok(Writer::new(stream(number)?, EVENT_BYTES)))
        .collect::<Result<Vec<_>>>()?;
    runtime.block_on(async {
        for _ in 0..events {
            for writer in &mut writers {
                writer.write_relaxed(&log, 1).await?;
            }
        }
        match writers.first_mut() {
            Some(writer) => writer.write(&log, 0).await.map(drop),
            None => Ok(()),
        }
    })?;
    Ok(log)
}

fn pages(runtime: &Runtime, log: &Log, number: usize, from: u64, pages: u64) -> Result<[f64; 1]> {
    let stream = stream(number)?;
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
            assert_eq!(pages(&runtime, &log, 0, from, 2).is_ok(), is_whole, "{from}");
        }
        files::close(log, directory.path()).unwrap();
    }

    #[test]
    fn streams_that_took_turns_are_whole() {
        let (runtime, directory) = (files::runtime().unwrap(), TempDir::new().unwrap());
        let log = mixed_log(&runtime, directory.path(), 3, 256).unwrap();
        for (number, is_whole) in [(0, true), (2, true), (3, false)] {
            assert_eq!(pages(&runtime, &log, number, 0, 1).is_ok(), is_whole, "{number}");
        }
        files::close(log, directory.path()).unwrap();
    }
}
