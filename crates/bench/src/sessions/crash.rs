//! How soon a session accepts the next prompt after its daemon was killed in the middle of a turn.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::session_daemon::SessionDaemon;
use crate::measure::Measured;
use crate::report::Table;
use crate::statistics::nanoseconds;

const TIMES: usize = 5;
/// The program that the report is about refuses prompts for 28 s after that.
const BAR_MS: f64 = 1000.0;
const GONE_WITHIN: Duration = Duration::from_secs(30);

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Sessions: after a crash",
        "The daemon is killed with SIGKILL while a turn runs, and started again with `tidelock up`. From the moment that it answers: the prompt to the same \
         session, until its turn is done. The program that the report is about refuses it for 28 s.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let (mut to_accept, mut to_end) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let daemon = SessionDaemon::start(tidelock)?;
        let session = daemon.session()?;
        let left = daemon.turn(&session, "steps:\n- say: before\n- sleep: 600s\n")?;
        kill(daemon.pid)?;
        let daemon = daemon.after_kill()?;
        let began = Instant::now();
        let turn = daemon.turn(&session, "steps:\n- say: after\n")?;
        to_accept.push(nanoseconds(began.elapsed()));
        let ended = daemon.ended(&session, &turn)?;
        to_end.push(nanoseconds(began.elapsed()));
        ensure!(ended["state"] == "done", "the next turn is {}", ended["state"]);
        let left = daemon.ended(&session, &left)?;
        ensure!(left["state"] == "interrupted", "the turn is {}", left["state"]);
    }
    let measured = |samples| Measured {
        name: "tidelock",
        samples,
    };
    table.under("the next prompt is accepted", &measured(to_accept), BAR_MS);
    table.under("its turn is done", &measured(to_end), BAR_MS);
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    ensure!(
        killed.context("cannot run kill")?.success(),
        "the daemon was not killed"
    );
    let began = Instant::now();
    while is_alive(pid) {
        ensure!(began.elapsed() < GONE_WITHIN, "the daemon is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether a process is running. A zombie is not.
fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains('Z'))
}
