//! How soon a returning reader has caught up, on a short stream and on a long one.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::session_daemon::{SessionDaemon, words};
use super::sse::{Lines, some};
use crate::jobs::runtime;
use crate::measure::Measured;
use crate::report::{Bar, BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds};

/// The lengths of the streams.
const SHORT: u64 = 10_000;
const LONG: u64 = 1_000_000;
/// How many events the reader has missed.
const MISSED: u64 = 20;
const TIMES: usize = 101;
const PAUSE: Duration = Duration::from_secs(30);
const PAUSED_EVENTS: u64 = 100_000;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Sessions: coming back",
        "A reader that has missed the last 20 events of a turn comes back with `Last-Event-ID`: from the connect to the last of them. The long stream has a million \
         events, the short one ten thousand; `the peer` is the short one, and the bar is that the long one takes no more than twice as long. Below, a \
         reader that reads nothing for 30 s while 100,000 events are said, is cut off or not, and comes back where it was.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let runtime = runtime()?;
    let daemon = SessionDaemon::start(tidelock)?;
    let mut requests = Vec::new();
    for events in [SHORT, LONG] {
        let session = daemon.session()?;
        let turn = daemon.turn(&session, &words(0, events))?;
        let ended = daemon.ended(&session, &turn)?;
        let last = ended["last_sequence"]
            .as_u64()
            .context("a turn without a last event")?;
        ensure!(last > events, "the turn has {last} events");
        requests.push(daemon.request(&session, &turn, &format!("?after={}", last - MISSED)));
    }
    let door = daemon.door();
    let mut samples = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        for (request, samples) in requests.iter().zip(&mut samples) {
            let began = Instant::now();
            let caught_up = runtime.block_on(async { some(door.ask(request).await?, MISSED).await })?;
            samples.push(nanoseconds(caught_up - began));
        }
    }
    let [short, long] = samples;
    let measured = |name, samples| Measured { name, samples };
    table.compare(
        "20 events of a million",
        &measured("tidelock", long),
        &measured("20 events of ten thousand", short),
        Bar::WithinTimes(2.0),
    );
    pause(table, &daemon)
}

fn pause(table: &mut Table, daemon: &SessionDaemon) -> Result<()> {
    let runtime = runtime()?;
    let session = daemon.session()?;
    let turn = daemon.turn(&session, &words(500, PAUSED_EVENTS))?;
    let (door, all) = (daemon.door(), daemon.request(&session, &turn, ""));
    let paused = runtime.block_on(door.ask(&all))?;
    std::thread::sleep(PAUSE);
    let last = daemon.ended(&session, &turn)?["last_sequence"]
        .as_u64()
        .unwrap_or(0);
    let began = Instant::now();
    let mut lines = Lines::default();
    runtime.block_on(async {
        // Whether it broke off or not, the received events count.
        if let Err(error) = lines.read(paused).await {
            eprintln!("the reader that paused was cut off: {error:#}");
        }
        if lines.ended.is_none() {
            let after = lines.last_id.unwrap_or(0);
            let rest = daemon.request(&session, &turn, &format!("?after={after}"));
            lines.read(door.ask(&rest).await?).await?;
        }
        anyhow::Ok(())
    })?;
    let (seen, took) = (lines.events, nanoseconds(began.elapsed()));
    let cells = vec![
        format!("events after a pause of {} s", PAUSE.as_secs()),
        String::new(),
        format!("{seen} of {last}, in {}", Figure::of(&[took]).nanoseconds()),
        String::new(),
        String::new(),
        "all of them".to_owned(),
    ];
    table.judged_row(cells, BarVerdict::from(seen == last));
    Ok(())
}
