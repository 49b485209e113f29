//! Opening a log of 1 GiB.

use std::{fs::File, path::Path, time::Instant};

use anyhow::{Context as _, Result, ensure};
use eventlog::{BODY_LIMIT_BYTES, Sequence};
use rustix::fs::{Advice, fadvise, statvfs};
use tokio::runtime::Runtime;

use super::{
    files,
    rows::{EVENT_BYTES, Writer, stream},
};
use crate::{
    measure::Measured,
    report::{BarVerdict, Table},
    statistics::{Figure, nanoseconds},
    turns::{LongContender, Rounds, in_long_turns, scratch},
};

const GIB: u64 = 1 << 30;
/// The free space needed: the log, as much again for the write-ahead log, and some slack.
const ROOM_BYTES: u64 = 3 * GIB;
/// Each has a body of the maximum size.
const LARGE_EVENTS: usize = GIB as usize / BODY_LIMIT_BYTES;
const EVENTS_PER_COMMIT: usize = 16;
const BAR_SECONDS: f64 = 1.0;
const ROUNDS: Rounds = Rounds {
    counted: 11,
    warm_up: 1,
};

/// How much of the file the kernel still has in memory.
#[derive(Clone, Copy, Debug)]
enum Cache {
    Cold,
    Warm,
}

/// Measures and fills a table; if the disk has too little space, a row says so.
pub(crate) fn measure() -> Result<Table> {
    let mut table = Table::with_columns(
        "The log: opening 1 GiB",
        "A log of 1,024 events of 1 MiB, closed in good order. It is opened, and the last event of a small stream is \
         read. Cold means that the kernel was told to forget the file before.",
        &["what", "tidelock", "bar", "met"],
    );
    let directory = scratch()?;
    let free = statvfs(directory.path())?;
    let free_bytes = free.f_bavail * free.f_frsize;
    if free_bytes < ROOM_BYTES {
        let why = format!("there are {} MiB free, and 3 GiB are needed", free_bytes >> 20);
        table.not_measured(&why);
        return Ok(table);
    }
    let runtime = files::runtime()?;
    make(&runtime, directory.path())?;
    let [[cold], [warm]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("cold", |_| open(&runtime, directory.path(), Cache::Cold)),
            LongContender::new("warm", |_| open(&runtime, directory.path(), Cache::Warm)),
        ],
    )?;
    directory.close()?;
    row(&mut table, "open and read, cold", &cold);
    row(&mut table, "open and read, warm", &warm);
    Ok(table)
}

fn row(table: &mut Table, what: &str, measured: &Measured) {
    let figure = Figure::of(&measured.samples);
    let verdict = BarVerdict::from(figure.median < BAR_SECONDS * 1e9);
    table.row(vec![
        what.to_owned(),
        figure.nanoseconds(),
        format!("under {BAR_SECONDS} s"),
        verdict.to_string(),
    ]);
    table.judge(verdict);
}

fn make(runtime: &Runtime, directory: &Path) -> Result<()> {
    let log = files::open(directory)?;
    runtime.block_on(async {
        let mut large = Writer::new(stream(0)?, BODY_LIMIT_BYTES);
        for _ in 0..LARGE_EVENTS / EVENTS_PER_COMMIT {
            large.write_relaxed(&log, EVENTS_PER_COMMIT).await?;
        }
        Writer::new(stream(1)?, EVENT_BYTES).write(&log, 1).await
    })?;
    files::close(log, directory)?;
    let bytes = files::path_in(directory).metadata()?.len();
    ensure!(bytes >= GIB, "the log has {bytes} bytes only");
    Ok(())
}

fn open(runtime: &Runtime, directory: &Path, cache: Cache) -> Result<[f64; 1]> {
    let file = File::open(files::path_in(directory))?;
    match cache {
        Cache::Cold => fadvise(&file, 0, None, Advice::DontNeed)?,
        Cache::Warm => {}
    }
    drop(file);
    let began = Instant::now();
    let log = files::open(directory)?;
    let read = runtime.block_on(log.read(&stream(1)?, Sequence::START, 1))?;
    let took = began.elapsed();
    let event = read.events.first().context("the event is gone")?;
    ensure!(event.body.len() == EVENT_BYTES, "another event was read");
    files::close(log, directory)?;
    Ok([nanoseconds(took)])
}
