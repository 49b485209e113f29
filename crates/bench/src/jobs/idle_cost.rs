//! What a daemon costs that has nothing to do, or nothing to do yet.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::commands::CommandJobs;
use crate::idleness::{Use, used_by};
use crate::report::{BarVerdict, Table};
use crate::statistics::short;

/// How long to leave the daemon alone before watching it, and how long to watch it.
const SETTLE: Duration = Duration::from_secs(2);
const WATCHED: Duration = Duration::from_secs(10);
const DELAYED_JOBS: usize = 1_000;
const DELAY_MS: u64 = 3_600_000;
const BAR_PER_SECOND: f64 = 1.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Jobs: an idle queue",
        "The shipped daemon, left alone for two seconds and watched for ten. Wake-ups are the context switches, voluntary or not, of all its threads. \
         The delayed jobs are to start in an hour.",
        &["queue", "wake-ups", "CPU", "bar", "met"],
    );
    for (what, jobs) in [("empty", 0), ("1,000 delayed jobs", DELAYED_JOBS)] {
        match watch(tidelock, jobs) {
            Ok((per_second, cpu)) => {
                let cells = vec![
                    what.to_owned(),
                    format!("{} /s", short(per_second)),
                    format!("{} ms in 10 s", short(cpu.as_secs_f64() * 1e3)),
                    format!("at most {BAR_PER_SECOND} /s"),
                ];
                table.judged_row(cells, BarVerdict::from(per_second <= BAR_PER_SECOND));
            }
            Err(error) => table.not_measured(&format!("{error:#}")),
        }
    }
    Ok(table)
}

fn watch(tidelock: &Path, delayed_jobs: usize) -> Result<(f64, Duration)> {
    let mut jobs = CommandJobs::start(tidelock)?;
    for _ in 0..delayed_jobs {
        jobs.submit("true", Path::new("/"), &json!({"delay_ms": DELAY_MS}))?;
    }
    let pid = jobs.daemon_pid()?;
    thread::sleep(SETTLE);
    let before = used_by(pid)?;
    let began = Instant::now();
    thread::sleep(WATCHED);
    let Use { switches, cpu } = used_by(pid)?.since(&before);
    Ok((switches as f64 / began.elapsed().as_secs_f64(), cpu))
}
