//! How late a line of a job's output reaches a reader on another machine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;

use super::{fifo, machines};
use crate::jobs::{CommandJobs, Database, Server};
use crate::measure::Measured;
use crate::report::{Bar, Table};
use crate::sessions::{Door, Stream, until_there};
use crate::statistics::nanoseconds;

const LINES: usize = 200;
/// The first lines, which don't count: the jobs start, and statements are planned.
const WARM_UP_LINES: usize = 20;
/// The pause between two lines.
const REST: Duration = Duration::from_millis(10);
const READ_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn fill(table: &mut Table, tidelock: &Path, server: &Server, runtime: &Runtime) -> Result<()> {
    let database = Database::make(server, runtime)?;
    let [other, mut works] = machines(tidelock, &database.url())?;
    works.set_workers(2)?;
    let read_elsewhere = Said::new(&mut works, runtime)?;
    let read_here = Said::new(&mut works, runtime)?;
    let measured = runtime.block_on(async {
        let mut elsewhere = read_elsewhere.read_at(&other).await?;
        let mut here = read_here.read_at(&works).await?;
        let measured = |name| Measured {
            name,
            samples: Vec::with_capacity(LINES),
        };
        let mut measured = [measured("another machine"), measured("the same machine")];
        for number in 0..WARM_UP_LINES + LINES {
            let took = [elsewhere.line(number).await?, here.line(number).await?];
            if number >= WARM_UP_LINES {
                for (measured, took) in measured.iter_mut().zip(took) {
                    measured.samples.push(took);
                }
            }
        }
        anyhow::Ok(measured)
    });
    let [elsewhere, here] = measured?;
    let what = "a line of output to a reader at another machine";
    table.compare(what, &elsewhere, &here, Bar::WithinTimes(2.0));
    Ok(())
}

/// A job that prints what it receives through a named pipe.
struct Said {
    id: String,
    given: pipe::Sender,
    _directory: tempfile::TempDir,
}

/// Such a job and the reader of its output.
struct Read {
    said: Said,
    stream: Box<dyn Stream>,
    heard: Vec<u8>,
}

impl Said {
    fn new(machine: &mut CommandJobs, runtime: &Runtime) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = fifo(directory.path())?;
        let _entered = runtime.enter();
        // With both ends open here, the pipe exists before the job does.
        let given = pipe::OpenOptions::new().read_write(true).open_sender(&path)?;
        let shell = format!("exec cat {}", path.display());
        Ok(Self {
            id: machine.submit(&shell, Path::new("/"), &json!({}))?,
            given,
            _directory: directory,
        })
    }

    async fn read_at(self, machine: &CommandJobs) -> Result<Read> {
        let daemon = machine.daemon();
        let request = format!(
            "GET /v1/jobs/{}/logs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             accept: text/event-stream\r\n\r\n",
            self.id,
            daemon.token()?
        );
        let mut stream = Door::Unix(daemon.socket()?).ask(&request).await?;
        until_there(&mut stream).await?;
        Ok(Read {
            said: self,
            stream,
            heard: Vec::new(),
        })
    }
}

impl Read {
    /// Nanoseconds from writing a line until it is read.
    async fn line(&mut self, number: usize) -> Result<f64> {
        tokio::time::sleep(REST).await;
        let began = Instant::now();
        self.said
            .given
            .write_all(format!("line {number}.\n").as_bytes())
            .await?;
        tokio::time::timeout(READ_WITHIN, self.until(&format!("line {number}.")))
            .await
            .with_context(|| format!("line {number} did not come"))??;
        Ok(nanoseconds(began.elapsed()))
    }

    async fn until(&mut self, line: &str) -> Result<()> {
        self.heard.clear();
        while !self
            .heard
            .windows(line.len())
            .any(|window| window == line.as_bytes())
        {
            let count = self.stream.read_buf(&mut self.heard).await?;
            ensure!(
                count > 0,
                "the stream ended: {}",
                String::from_utf8_lossy(&self.heard)
            );
        }
        Ok(())
    }
}
