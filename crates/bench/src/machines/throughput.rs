//! How fast one, two and three machines get through the same backlog.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::runtime::Runtime;

use super::machines;
use crate::jobs::{Database, Server};
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

/// A multiple of the number of jobs that three machines run at once.
const JOBS: usize = 144;
/// Few, so that the processors are not the limit.
const WORKERS: usize = 8;
const JOB: &str = "sleep 0.5";
const ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};

pub(super) fn fill(table: &mut Table, tidelock: &Path, server: &Server, runtime: &Runtime) -> Result<()> {
    let [[one], [two], [three]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("1 machine", |_| backlog::<1>(tidelock, server, runtime)),
            LongContender::new("2 machines", |_| backlog::<2>(tidelock, server, runtime)),
            LongContender::new("3 machines", |_| backlog::<3>(tidelock, server, runtime)),
        ],
    )?;
    table.compare_rates("backlog, 2 machines", &two, &one, Bar::TimesFaster(1.9));
    table.compare_rates("backlog, 3 machines", &three, &one, Bar::TimesFaster(2.8));
    Ok(())
}

fn backlog<const MACHINES: usize>(tidelock: &Path, server: &Server, runtime: &Runtime) -> Result<[f64; 1]> {
    let database = Database::make(server, runtime)?;
    let mut machines = machines::<MACHINES>(tidelock, &database.url())?;
    let mut ids = Vec::with_capacity(JOBS);
    for _ in 0..JOBS {
        ids.push(machines[0].submit(JOB, Path::new("/"), &json!({"anywhere": true}))?);
    }
    let began = Instant::now();
    for machine in &mut machines {
        machine.set_workers(WORKERS)?;
    }
    for id in &ids {
        let job = machines[0].ended(id)?;
        ensure!(job["state"] == "succeeded", "a job ended as {}", job["state"]);
    }
    Ok([nanoseconds(began.elapsed()) / JOBS as f64])
}
