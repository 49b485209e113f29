//! How soon a job starts on another machine than the one it was submitted to.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;

use super::{fifo, machines};
use crate::jobs::{CommandJobs, Database, Server};
use crate::measure::Measured;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;

const STARTS: usize = 100;
/// The first starts, which don't count: the worker takes its lease, and statements are planned.
const WARM_UP_STARTS: usize = 10;
/// How long the queue is idle between two submissions.
const REST: Duration = Duration::from_millis(20);
const START_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn fill(table: &mut Table, tidelock: &Path, server: &Server, runtime: &Runtime) -> Result<()> {
    let database = Database::make(server, runtime)?;
    let [mut takes, mut works] = machines(tidelock, &database.url())?;
    works.set_workers(1)?;
    let mut starts = Starts::new(runtime)?;
    let measured = |name| Measured {
        name,
        samples: Vec::with_capacity(STARTS),
    };
    let (mut elsewhere, mut here) = (measured("another machine"), measured("the same machine"));
    for number in 0..WARM_UP_STARTS + STARTS {
        let took = [starts.after(&mut takes)?, starts.after(&mut works)?];
        if number >= WARM_UP_STARTS {
            elsewhere.samples.push(took[0]);
            here.samples.push(took[1]);
        }
    }
    let what = "from the submission to the start on another machine";
    table.compare(what, &elsewhere, &here, Bar::WithinTimes(2.0));
    Ok(())
}

/// Jobs that report their start through a named pipe.
struct Starts<'a> {
    runtime: &'a Runtime,
    told: pipe::Receiver,
    shell: String,
    _directory: tempfile::TempDir,
}

impl<'a> Starts<'a> {
    fn new(runtime: &'a Runtime) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = fifo(directory.path())?;
        let _entered = runtime.enter();
        Ok(Self {
            runtime,
            // With both ends open here, it is never closed.
            told: pipe::OpenOptions::new().read_write(true).open_receiver(&path)?,
            shell: format!("echo > {}", path.display()),
            _directory: directory,
        })
    }

    /// Nanoseconds from the submission of a job to a machine until it runs somewhere.
    fn after(&mut self, machine: &mut CommandJobs) -> Result<f64> {
        std::thread::sleep(REST);
        let began = Instant::now();
        let id = machine.submit(&self.shell, Path::new("/"), &json!({"anywhere": true}))?;
        let told = async { tokio::time::timeout(START_WITHIN, self.told.read_u8()).await };
        self.runtime.block_on(told).context("a job did not start")??;
        let took = nanoseconds(began.elapsed());
        machine.ended(&id)?;
        Ok(took)
    }
}
