//! How soon a job starts on an idle queue.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jobs::NewJob;
use kernel::{CancellationToken, Deadline};
use tokio::sync::mpsc;

use super::handlers::Tell;
use super::load::{self, HANDLER, Service, Store};
use super::peers::Apalis;
use super::sqlite::file_in;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds, percentiles, short};
use crate::turns::scratch;

/// How many jobs are pushed in a turn, and by whom.
const PUSHES: usize = 100;
const PEER_PUSHES: usize = 20;
const ROUNDS: usize = 3;
/// How long the queue is idle between two pushes.
const REST: Duration = Duration::from_millis(20);
const BAR_MS: f64 = 2.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Jobs: from the push to the start",
        "A job is pushed to a queue on SQLite that is empty and has been for 20 ms. The clock stops when its handler starts; by then the job and its claim \
         are on disk (`FULL`). 300 pushes of ours, 60 of apalis-sqlite with the hook that it has for low latency, in turns.",
        &["who", "median", "p99", "bar", "met"],
    );
    let runtime = load::runtime()?;
    let scratch = scratch()?;
    let apalis = Apalis::get(tidelock);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let directory = |who: &str| -> Result<_> {
            let directory = scratch.path().join(format!("{who}-{round}"));
            std::fs::create_dir(&directory)?;
            Ok(directory)
        };
        ours.extend(runtime.block_on(push(&directory("ours")?, PUSHES))?);
        if let Ok(apalis) = &apalis {
            let file = file_in(&directory("theirs")?)?;
            theirs.extend(apalis.ask(&["sqlite-idle", &file, &PEER_PUSHES.to_string()])?);
        }
    }
    row(&mut table, "tidelock", &ours, Some(BAR_MS));
    match apalis {
        Ok(_) => row(&mut table, "apalis-sqlite", &theirs, None),
        Err(error) => table.not_measured(&format!("{error:#}")),
    }
    Ok(table)
}

async fn push(directory: &Path, pushes: usize) -> Result<Vec<f64>> {
    let (started, mut starts) = mpsc::channel(1);
    let service = Service::open(&Store::Sqlite(directory), Arc::new(Tell { started }), 1).await?;
    let mut figures = Vec::with_capacity(pushes);
    for number in 0..=pushes {
        tokio::time::sleep(REST).await;
        let job = NewJob::new(HANDLER, "nothing", b"0".to_vec(), "bench");
        let pushed = Instant::now();
        let submitted = service.jobs.submit(job).await?;
        let started = starts.recv().await.context("the handler has gone")?;
        // The first job also takes the lease.
        if number > 0 {
            figures.push(nanoseconds(started - pushed));
        }
        let scope = CancellationToken::new().scope();
        service
            .jobs
            .wait(submitted.job().id, &Deadline::never(), &scope)
            .await?;
    }
    service.close().await;
    Ok(figures)
}

fn row(table: &mut Table, who: &str, samples: &[f64], bar_ms: Option<f64>) {
    let [median, p99] = percentiles(samples, [50, 99]);
    let verdict = bar_ms.map_or(BarVerdict::NotAsked, |bar| BarVerdict::from(median < bar * 1e6));
    let cells = vec![
        who.to_owned(),
        Figure::of(samples).nanoseconds(),
        format!("{} ms", short(p99 / 1e6)),
        bar_ms.map_or_else(String::new, |bar| format!("median under {bar} ms")),
    ];
    table.judged_row(cells, verdict);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_push_is_measured() {
        let directory = tempfile::TempDir::new().unwrap();
        let figures = load::runtime()
            .unwrap()
            .block_on(push(directory.path(), 3))
            .unwrap();
        assert_eq!(figures.len(), 3);
        assert!(figures.iter().all(|figure| *figure > 0.0), "{figures:?}");
    }
}
