//! How many events per second reach 1, 20 and 200 readers, and what each costs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::peer::Peer;
use super::session_daemon::{SessionDaemon, words};
use super::sse::{Door, Seen, to_the_end};
use crate::idleness::used_by;
use crate::jobs::runtime;
use crate::measure::Measured;
use crate::report::{Bar, BarVerdict, Table};
use crate::statistics::{Figure, short};
use crate::turns::{LongContender, Rounds, in_long_turns};

const ROUNDS: Rounds = Rounds {
    counted: 5,
    warm_up: 1,
};
/// How long a turn waits for its readers to connect.
const WAIT_MS: u64 = 1500;

/// How many readers, how many events each of them gets, from us and from the peer, and how many per second the
/// program that the report is about delivers to all of them.
const LOADS: [Load; 3] = [
    Load {
        readers: 1,
        events: 200_000,
        peer_events: 20_000,
        original_per_second: 2863.0,
    },
    Load {
        readers: 20,
        events: 50_000,
        peer_events: 2000,
        original_per_second: 12_000.0,
    },
    Load {
        readers: 200,
        events: 10_000,
        peer_events: 200,
        original_per_second: 12_000.0,
    },
];
/// How many times as many events we have to deliver.
const BAR_TIMES_ORIGINAL: f64 = 20.0;
/// The same, relative to what the peer delivers per second of CPU time.
const BAR_TIMES_PEER: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
struct Load {
    readers: usize,
    events: u64,
    peer_events: u64,
    original_per_second: f64,
}

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Sessions: events to many readers",
        "One turn that says one word after the other as fast as it can; its readers are there before the first word, and each checks that no event \
         is missing. The clock runs from the first word that a reader gets to the last event of the last reader; the turn writes its stream \
         to disk meanwhile, and agent, daemon and readers share the processors of the machine. CPU is that of the daemon, agent and log included, for \
         each event that a reader got. The peer, FastAPI with sse-starlette, keeps its events in memory only. The original is the program that \
         the report is about; its figures were measured before, on a machine like this one.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let runtime = runtime()?;
    let daemon = SessionDaemon::start(tidelock)?;
    let peer = Peer::start(tidelock)?;
    for load in LOADS {
        let [[our_time, our_cpu], [their_time, their_cpu]] = in_long_turns(
            ROUNDS,
            [
                LongContender::new("tidelock", |_: &Path| ours(&daemon, &runtime, load)),
                LongContender::new("FastAPI, sse-starlette", |_: &Path| theirs(&peer, &runtime, load)),
            ],
        )?;
        let readers = match load.readers {
            1 => "1 reader".to_owned(),
            readers => format!("{readers} readers"),
        };
        against_original(table, &format!("events delivered, {readers}"), &our_time, load);
        table.compare_rates(
            &format!("events delivered, {readers}"),
            &our_time,
            &their_time,
            Bar::None,
        );
        let what = format!("CPU for a delivered event, {readers}");
        table.compare(&what, &our_cpu, &their_cpu, Bar::TimesFaster(BAR_TIMES_PEER));
    }
    Ok(())
}

fn against_original(table: &mut Table, what: &str, ours: &Measured, load: Load) {
    let rates: Vec<f64> = ours.samples.iter().map(|nanoseconds| 1e9 / nanoseconds).collect();
    let figure = Figure::of(&rates);
    let ratio = figure.median / load.original_per_second;
    let cells = vec![
        what.to_owned(),
        "the original".to_owned(),
        figure.per_second(),
        format!("{} /s", load.original_per_second),
        short(ratio),
        format!("{BAR_TIMES_ORIGINAL} × faster"),
    ];
    table.judged_row(cells, BarVerdict::from(ratio >= BAR_TIMES_ORIGINAL));
}

fn ours(daemon: &SessionDaemon, runtime: &Runtime, load: Load) -> Result<[f64; 2]> {
    let session = daemon.session()?;
    let turn = daemon.turn(&session, &words(WAIT_MS, load.events))?;
    let request = daemon.request(&session, &turn, "");
    measured(runtime, &daemon.door(), &request, load.readers, daemon.pid)
}

fn theirs(peer: &Peer, runtime: &Runtime, load: Load) -> Result<[f64; 2]> {
    let request = peer.turn(load.peer_events, load.readers)?;
    measured(runtime, &peer.door(), &request, load.readers, peer.pid())
}

/// Nanoseconds of wall and CPU time for each event that a reader received.
fn measured(runtime: &Runtime, door: &Door, request: &str, readers: usize, pid: u32) -> Result<[f64; 2]> {
    let before = used_by(pid)?;
    let seen = runtime.block_on(read_all(door, request, readers))?;
    let cpu = used_by(pid)?.since(&before).cpu;
    let first = seen.iter().map(|seen| seen.first).min();
    let last = seen.iter().map(|seen| seen.last).max();
    let took = last.zip(first).map(|(last, first)| last - first);
    let events: u64 = seen.iter().map(|seen| seen.events).sum();
    let each = |time: Duration| time.as_secs_f64() * 1e9 / events as f64;
    Ok([each(took.context("there was no reader")?), each(cpu)])
}

async fn read_all(door: &Door, request: &str, readers: usize) -> Result<Vec<Seen>> {
    let mut tasks = JoinSet::new();
    for _ in 0..readers {
        let stream = door.ask(request).await?;
        tasks.spawn(to_the_end(stream));
    }
    let mut seen = Vec::with_capacity(readers);
    while let Some(ended) = tasks.join_next().await {
        seen.push(ended??);
    }
    Ok(seen)
}
