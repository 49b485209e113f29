//! The daemon as it is shipped: how long `tidelock status` takes, and what an idle daemon costs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::report::{Table, Verdict};
use crate::statistics::{Figure, nanoseconds, ratio, short};

const RUNS: usize = 101;
const WARM_UP_RUNS: usize = 5;
/// How long the daemon is left alone before it is watched, and then how long it is watched.
const SETTLE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(10);

const STATUS_BAR_MS: f64 = 15.0;
const MEMORY_BAR_MIB: f64 = 30.0;
const WAKE_UPS_BAR_PER_SECOND: f64 = 1.0;

/// A daemon with a home of its own, stopped when it is dropped.
struct Daemon<'a> {
    tidelock: &'a Path,
    home: PathBuf,
    /// The directory that holds the home; it goes last.
    _directory: tempfile::TempDir,
}

/// Measures and puts the results into a table; a daemon that does not start is a row that says so.
pub(crate) fn measure(tidelock: &Path) -> Table {
    let mut table = Table::with_columns(
        "The daemon",
        "The shipped binary with a home of its own. `tidelock status` and `true` are started in turns, and their wall \
         time is taken from start to end. The idle daemon is left alone for two seconds and watched for ten: wake-ups \
         are the context switches, voluntary or not, of all its threads.",
        &["what", "peer", "tidelock", "the peer", "ratio", "bar", "met"],
    );
    if let Err(error) = fill(&mut table, tidelock) {
        table.not_measured(&format!("{error:#}"));
    }
    table
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let daemon = Daemon::start(tidelock)?;
    let (status, nothing) = status_and_true(&daemon)?;
    let figure = Figure::of(&status);
    let verdict = Verdict::from(figure.median < STATUS_BAR_MS * 1e6);
    table.row(vec![
        "`tidelock status`, wall".to_owned(),
        "`true`".to_owned(),
        figure.nanoseconds(),
        Figure::of(&nothing).nanoseconds(),
        short(ratio(&status, &nothing)),
        format!("under {STATUS_BAR_MS} ms"),
        verdict.to_string(),
    ]);
    table.judge(verdict);

    let pid = daemon.pid()?;
    thread::sleep(SETTLE);
    let before = switches(pid)?;
    let watched = Instant::now();
    thread::sleep(IDLE);
    let after = switches(pid)?;
    let per_second = added(&before, &after) as f64 / watched.elapsed().as_secs_f64();
    let mebibytes = resident_kib(pid)? as f64 / 1024.0;
    let mut absolute = |what: &str, value: f64, bar: f64, is_met: bool, unit: &str| {
        let verdict = Verdict::from(is_met);
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

/// Wall times of both programs, in turns.
fn status_and_true(daemon: &Daemon<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut status, mut nothing) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    for run in 0..WARM_UP_RUNS + RUNS {
        let took = (
            wall(&mut daemon.command(&["status"]))?,
            wall(&mut Command::new("true"))?,
        );
        if run >= WARM_UP_RUNS {
            status.push(took.0);
            nothing.push(took.1);
        }
    }
    Ok((status, nothing))
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

impl<'a> Daemon<'a> {
    fn start(tidelock: &'a Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let home = directory.path().join("home");
        fs::create_dir(&home)?;
        let output = command(tidelock, &home, &["up"]).stdin(Stdio::null()).output();
        let output = output.context("`tidelock` is not built")?;
        if !output.status.success() {
            bail!(
                "`tidelock up` failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(Self {
            tidelock,
            home,
            _directory: directory,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        command(self.tidelock, &self.home, arguments)
    }

    fn pid(&self) -> Result<u32> {
        let output = self.command(&["status", "--json"]).output()?;
        let status: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("`tidelock status --json` is not JSON")?;
        let pid = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.context("`tidelock status --json` names no pid")
    }
}

fn command(tidelock: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(tidelock);
    command
        .args(arguments)
        .env("TIDELOCK_HOME", home)
        .env("TIDELOCK_LISTEN", "127.0.0.1:0");
    command
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let stopped = self
            .command(&["down"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!(
                "warning: `tidelock down` failed; a daemon may be left with home {}",
                self.home.display()
            );
        }
    }
}

/// Context switches so far, by thread.
fn switches(pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut by_thread = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let entry = entry?;
        // A thread may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        by_thread.insert(
            entry.file_name().to_string_lossy().into_owned(),
            switches_in(&status),
        );
    }
    Ok(by_thread)
}

fn switches_in(status: &str) -> u64 {
    number(status, "voluntary_ctxt_switches") + number(status, "nonvoluntary_ctxt_switches")
}

fn added(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> u64 {
    after
        .iter()
        .map(|(thread, count)| count.saturating_sub(before.get(thread).copied().unwrap_or(0)))
        .sum()
}

fn resident_kib(pid: u32) -> Result<u64> {
    Ok(number(
        &fs::read_to_string(format!("/proc/{pid}/status"))?,
        "VmRSS",
    ))
}

/// The number in a line such as `VmRSS:    5432 kB`; zero if there is none.
fn number(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_counters_are_read_and_summed() {
        let status = "VmRSS:\t    5432 kB\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let read = (
            number(status, "VmRSS"),
            switches_in(status),
            number(status, "VmSwap"),
        );
        assert_eq!(read, (5432, 15, 0));
        let by_thread = |pairs: &[(&str, u64)]| {
            pairs
                .iter()
                .map(|(thread, count)| ((*thread).to_owned(), *count))
                .collect::<BTreeMap<_, _>>()
        };
        let before = by_thread(&[("1", 10), ("2", 5)]);
        let after = by_thread(&[("1", 12), ("3", 4)]);
        assert_eq!(added(&before, &after), 6);
    }
}
