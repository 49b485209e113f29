//! From a durable commit to a tail that has the event, next to the minimum that a disk requires.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use eventlog::{Sequence, TailItem};
use kernel::CancellationToken;
use tokio::{runtime::Runtime, sync::mpsc, task::JoinSet};

use super::{
    files,
    rows::{EVENT_BYTES, Writer, body, stream},
};
use crate::{
    report::{Bar, Table},
    statistics::{nanoseconds, percentiles},
    turns::{LongContender, Rounds, in_long_turns},
};

const COMMITS: usize = 500;
/// The first commits and writes of a turn, which don't count.
const WARM_UP: usize = 20;
const ROUNDS: Rounds = Rounds {
    counted: 21,
    warm_up: 1,
};

pub(crate) fn measure() -> Result<Table> {
    let runtime = files::runtime()?;
    let [[our_p50, our_p99], [bare_p50, bare_p99]] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", |directory| {
                summary(&commit_to_tail(&runtime, directory, COMMITS)?)
            }),
            LongContender::new("`write` and `fdatasync`", |directory| {
                summary(&write_and_sync(directory, COMMITS)?)
            }),
        ],
    )?;
    let mut table = Table::of_ratios(
        "The log: from commit to tail",
        "One task makes a durable commit of one head update and one event of 200 bytes; another task follows the \
         stream and notes when it has the event. The next commit is made after that. Beside it, the 200 bytes are \
         appended to a file on the same file system with `write` and `fdatasync`, which is the least that anything \
         durable can cost. A turn has 500 commits or writes, and each turn has its own 50th and 99th percentile.",
    );
    table.compare("commit to tail, p50", &our_p50, &bare_p50, Bar::None);
    table.compare("commit to tail, p99", &our_p99, &bare_p99, Bar::None);
    Ok(table)
}

fn summary(latencies: &[Duration]) -> Result<[f64; 2]> {
    let counted = latencies.get(WARM_UP..).unwrap_or_default();
    ensure!(!counted.is_empty(), "the whole turn was a warm-up");
    let samples: Vec<f64> = counted.iter().copied().map(nanoseconds).collect();
    Ok(percentiles(&samples, [50, 99]))
}

fn commit_to_tail(runtime: &Runtime, directory: &Path, commits: usize) -> Result<Vec<Duration>> {
    let log = files::open(directory)?;
    let stream = stream(0)?;
    let token = CancellationToken::new();
    let mut tail = log.tail(&stream, Sequence::START, &token.scope());
    let mut writer = Writer::new(stream, EVENT_BYTES);
    let latencies = runtime.block_on(async {
        // A capacity of one is enough: nothing is committed before the last event was seen.
        let (seen, mut arrivals) = mpsc::channel(1);
        let mut followers = JoinSet::new();
        followers.spawn(async move {
            for expected in 1..=commits as u64 {
                let item = tail.next().await?;
                let at = Instant::now();
                let TailItem::Event(event) = item else {
                    anyhow::bail!("an event was dropped");
                };
                ensure!(event.sequence.get() == expected, "the tail has a gap");
                seen.send(at).await?;
            }
            Ok(())
        });
        let mut latencies = Vec::with_capacity(commits);
        for _ in 0..commits {
            let began = Instant::now();
            writer.write(&log, 1).await?;
            let Some(at) = arrivals.recv().await else { break };
            latencies.push(at.duration_since(began));
        }
        let ended: Result<Vec<()>> = followers.join_all().await.into_iter().collect();
        ended.map(|_| latencies)
    })?;
    ensure!(latencies.len() == commits, "not every event arrived");
    files::close(log, directory)?;
    Ok(latencies)
}

fn write_and_sync(directory: &Path, writes: usize) -> Result<Vec<Duration>> {
    let mut file = File::create(directory.join("bare"))?;
    let body = body(EVENT_BYTES);
    let mut latencies = Vec::with_capacity(writes);
    for _ in 0..writes {
        let began = Instant::now();
        file.write_all(&body)?;
        file.sync_data()?;
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn every_commit_and_every_write_has_a_latency() {
        let (runtime, directory) = (files::runtime().unwrap(), TempDir::new().unwrap());
        let ours = commit_to_tail(&runtime, directory.path(), 5).unwrap();
        let bare = write_and_sync(directory.path(), 5).unwrap();
        assert_eq!((ours.len(), bare.len()), (5, 5));
        let written = std::fs::read(directory.path().join("bare")).unwrap();
        assert_eq!(written, body(EVENT_BYTES).repeat(5));
    }

    #[test]
    fn the_warm_up_is_left_out_of_the_percentiles() {
        let warm_up = std::iter::repeat_n(Duration::from_secs(1), WARM_UP);
        let latencies: Vec<_> = warm_up.chain((0..=100).map(Duration::from_nanos)).collect();
        let [p50, p99] = summary(&latencies).unwrap();
        assert_eq!((p50.round(), p99.round()), (50.0, 99.0));
        assert!(summary(&latencies[..WARM_UP]).is_err());
    }
}
