//! Several machines that share one Postgres: how throughput scales, and how late one learns what happens on another.
//!
//! A machine is a shipped daemon with its own home. All of them are on this computer, so the network between machines
//! costs nothing, and they share its processors with the database.

mod output;
mod start;
mod throughput;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::jobs::{CommandJobs, Server, runtime};
use crate::report::Table;

/// Measures and fills a table; if something is missing, a row says so.
pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Several machines on one Postgres",
        "Shipped daemons, each with a home of its own, on one server with its default settings, over a socket. They all run on this computer, and \
         share its processors. Backlog: 144 jobs of 0.5 s (`sleep 0.5`) are queued before any machine has a worker; then each gets 8, and the clock stops \
         when the machine that took the jobs knows that the last one has ended. From the submission to the start: the job is submitted to a machine \
         without workers and starts on the other one, or is submitted to that one itself; the queue has been empty for 20 ms, and the clock stops \
         when the command runs. Output: a job copies a line that it is given to its output, and the clock stops when a reader has the line, over a \
         stream that it opened before at another machine, or at the one that runs the job.",
    );
    let server = match Server::named() {
        Ok(server) => server,
        Err(error) => {
            table.skipped(&format!("{error:#}"));
            return Ok(table);
        }
    };
    let runtime = runtime()?;
    for fill in [throughput::fill, start::fill, output::fill] {
        if let Err(error) = fill(&mut table, tidelock, &server, &runtime) {
            table.not_measured(&format!("{error:#}"));
        }
    }
    Ok(table)
}

/// Starts machines on a database, without workers.
fn machines<const N: usize>(tidelock: &Path, database: &str) -> Result<[CommandJobs; N]> {
    let mut machines = Vec::with_capacity(N);
    for _ in 0..N {
        let mut machine = CommandJobs::start_on(tidelock, database)?;
        machine.set_workers(0)?;
        machines.push(machine);
    }
    let machines = machines.try_into();
    Ok(machines.unwrap_or_else(|_| unreachable!("that many were started")))
}

fn fifo(directory: &Path) -> Result<PathBuf> {
    let path = directory.join("pipe");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &path,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )?;
    Ok(path)
}
