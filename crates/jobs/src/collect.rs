//! Removes jobs that have ended: the job, its output and its idempotency key, together.

use std::collections::BTreeSet;
use std::time::Duration;

use eventlog::{CommitError, EntityRecord, HeadsOrder, HeadsQuery, Log, LogError, StreamId, UnixMs, Version};
use protocol::{JobId, JobState, JobsCollected};

use crate::dispatch::IDLE;
use crate::job::{Job, Record};
use crate::{history, output};

/// How many heads are read at a time.
const PAGE: u32 = 256;

/// Which ended jobs to collect.
#[derive(Clone, Copy, Debug)]
pub struct GcPolicy {
    /// Collect jobs that ended longer ago than this.
    pub older_than: Duration,
    /// Also collect the oldest jobs while the remaining ones have more output than this in total.
    pub output_budget_bytes: Option<u64>,
    /// Always keep this many of the newest jobs.
    pub keep_newest: u64,
}

pub(crate) async fn collect(log: &Log, policy: GcPolicy, now: UnixMs) -> Result<JobsCollected, LogError> {
    forget_idle_lanes(log).await?;
    let in_use = named(log).await?;
    let mut collected = JobsCollected::default();
    let (mut ended_seen, mut kept_bytes) = (0, 0);
    let mut pages = log.pages(HeadsQuery {
        kind: Record::KIND.into(),
        status: None,
        after: None,
        limit: PAGE,
        order: HeadsOrder::NewestFirst,
    });
    while let Some(page) = pages.next().await? {
        for job in page.iter().filter_map(|stored| Job::of_head(log, stored).ok()) {
            let Some(ended_at) = job.record.ended_at() else {
                continue;
            };
            ended_seen += 1;
            if let Some(budget) = policy.output_budget_bytes
                && kept_bytes <= budget
            {
                kept_bytes += output::readable_bytes(log, job.id).await?.unwrap_or(0);
            }
            let is_over = policy
                .output_budget_bytes
                .is_some_and(|budget| kept_bytes > budget);
            let is_due = is_over || now.since(ended_at) >= policy.older_than;
            if ended_seen <= policy.keep_newest || !is_due {
                continue;
            }
            if in_use.contains(&job.id) {
                collected.in_use += 1;
            } else if let Some(output_bytes) = forget(log, &job).await? {
                collected.jobs += 1;
                collected.output_bytes += output_bytes;
            }
        }
    }
    Ok(collected)
}

/// Removes lanes in which no job runs: a missing lane counts as idle. A commit that saw the lane before is
/// refused and retried.
async fn forget_idle_lanes(log: &Log) -> Result<(), LogError> {
    for stored in log.all_heads(history::LANE_KIND, Some(IDLE)).await? {
        // A lane that has changed is no longer idle.
        if let Err(CommitError::Log(error)) = log.remove(vec![(stored.stream, stored.version)]).await {
            return Err(error);
        }
    }
    Ok(())
}

/// The jobs that queued ones wait for, or have waited for: the next daemon looks them up again.
async fn named(log: &Log) -> Result<BTreeSet<JobId>, LogError> {
    let queued = Job::all(log, Some(JobState::Queued.as_str())).await?;
    Ok(queued
        .into_iter()
        .flat_map(|job| job.record.facts.after)
        .collect())
}

/// Removes a job. `None` if another daemon has removed or changed it, or if its output can't be read; such a
/// job stays until a user drops it by hand.
async fn forget(log: &Log, job: &Job) -> Result<Option<u64>, LogError> {
    assert!(
        job.record.state.is_terminal(),
        "only jobs that have ended are removed"
    );
    let Some(output_bytes) = output::readable_bytes(log, job.id).await? else {
        return Ok(None);
    };
    let output = history::output_stream(job.id);
    let key = job
        .record
        .facts
        .idempotency_key
        .as_deref()
        .map(history::key_stream);
    let mut streams: Vec<(StreamId, Version)> = vec![(history::job_stream(job.id), job.version)];
    for stream in [Some(output), key].into_iter().flatten() {
        if let Some(stored) = log.head(&stream).await? {
            streams.push((stream, stored.version));
        }
    }
    match log.remove(streams).await {
        Ok(()) => Ok(Some(output_bytes)),
        Err(CommitError::Log(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
