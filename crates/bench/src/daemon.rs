//! The shipped program: its size, how long its shortest commands take, and what an idle daemon costs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::idleness::used_by;
use crate::memory::resident_kib;
use crate::own_daemon::Daemon;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds, ratio, short};

const RUNS: usize = 101;
const WARM_UP_RUNS: usize = 5;
/// How long to leave the daemon alone before watching it, and how long to watch it.
const SETTLE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(10);

/// The commands to compare with `true`, and the milliseconds within which each has to end.
const COMMANDS: [(&str, f64); 3] = [("status", 15.0), ("--version", 10.0), ("--help", 10.0)];
const MEMORY_BAR_MIB: f64 = 30.0;
const WAKE_UPS_BAR_PER_SECOND: f64 = 1.0;

/// Measures and fills a table; if a daemon does not start, a row says so.
pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "The daemon",
        "The shipped binary with a home of its own. Commands of it and `true` are started in turns, and their wall time is \
         taken from start to end. The idle daemon is left alone for two seconds and watched for ten: wake-ups \
         are the context switches, voluntary or not, of all its threads.",
        &["what", "peer", "tidelock", "the peer", "ratio", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let daemon = Daemon::start(tidelock, |_| Ok(()))?;
    for (argument, bar_ms) in COMMANDS {
        let (ours, nothing) = in_turns(&daemon, argument)?;
        let figure = Figure::of(&ours);
        let cells = vec![
            format!("`tidelock {argument}`, wall"),
            "`true`".to_owned(),
            figure.nanoseconds(),
            Figure::of(&nothing).nanoseconds(),
            short(ratio(&ours, &nothing)),
            format!("under {bar_ms} ms"),
        ];
        table.judged_row(cells, BarVerdict::from(figure.median < bar_ms * 1e6));
    }
    let size = std::fs::metadata(tidelock)?.len() as f64 / f64::from(1 << 20);
    let cells = ["the binary", "", &format!("{} MiB", short(size)), "", "", "", ""];
    table.row(cells.map(str::to_owned).to_vec());

    let pid = daemon.pid()?;
    thread::sleep(SETTLE);
    let before = used_by(pid)?;
    let watched = Instant::now();
    thread::sleep(IDLE);
    let switches = used_by(pid)?.since(&before).switches;
    let per_second = switches as f64 / watched.elapsed().as_secs_f64();
    let mebibytes = resident_kib(pid)? as f64 / 1024.0;
    let mut absolute = |what: &str, value: f64, bar: f64, is_met: bool, unit: &str| {
        let verdict = BarVerdict::from(is_met);
        let cells = [what, "", &format!("{} {unit}", short(value)), "", ""].map(str::to_owned);
        let ends = [format!("under {bar} {unit}"), verdict.to_string()];
        table.row(cells.into_iter().chain(ends).collect());
        table.judge(verdict);
    };
    absolute(
        "idle daemon, resident",
        mebibytes,
        MEMORY_BAR_MIB,
        mebibytes < MEMORY_BAR_MIB,
        "MiB",
    );
    let is_quiet = per_second <= WAKE_UPS_BAR_PER_SECOND;
    absolute(
        "idle daemon, wake-ups",
        per_second,
        WAKE_UPS_BAR_PER_SECOND,
        is_quiet,
        "/s",
    );
    Ok(())
}

/// Wall times of one of our commands and of `true`, in turns.
fn in_turns(daemon: &Daemon, argument: &str) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut ours, mut nothing) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    for run in 0..WARM_UP_RUNS + RUNS {
        let took = (
            wall(&mut daemon.command(&[argument]))?,
            wall(&mut Command::new("true"))?,
        );
        if run >= WARM_UP_RUNS {
            ours.push(took.0);
            nothing.push(took.1);
        }
    }
    Ok((ours, nothing))
}

fn wall(command: &mut Command) -> Result<f64> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let ended = command.status()?;
    let took = nanoseconds(began.elapsed());
    ensure!(ended.success(), "{command:?} ended with {ended}");
    Ok(took)
}
