//! Recovery at start: makes the jobs in the log match reality.
//!
//! A job in state running whose worker is dead is interrupted before any request is served. Which workers are
//! dead is a fact, not a guess: without sharing, all others; with sharing, those with this home, because a home
//! has one daemon at a time. The workers of other homes are left to `remote_watch`, which checks their leases.

use std::{collections::BTreeSet, sync::Arc};

use eventlog::{HeadsOrder, HeadsQuery, Log, LogError, StoredHead};
use protocol::JobState;

use crate::{
    dispatch::Lane,
    history,
    job::{Job, State},
    service::Sharing,
};

/// How many heads are read at a time.
const PAGE: u32 = 1_000;

/// The jobs and lanes in the log.
#[derive(Debug, Default)]
pub(crate) struct JobScan {
    pub(crate) queued: Vec<Job>,
    /// Running jobs whose worker is dead.
    pub(crate) dead: Vec<Job>,
    pub(crate) lanes: Vec<(Arc<str>, Lane)>,
}

/// Reads the jobs and lanes.
pub(crate) async fn recover(log: &Log, sharing: Sharing, home: &str) -> Result<JobScan, LogError> {
    let mut found = JobScan::default();
    // A job that starts to run in the meantime belongs to another home; this one serves nobody yet.
    let (running, queued, lanes) = tokio::try_join!(
        all(log, history::JOB_KIND, Some(JobState::Running)),
        all(log, history::JOB_KIND, Some(JobState::Queued)),
        all(log, history::LANE_KIND, None),
    )?;
    let mut named: BTreeSet<String> = BTreeSet::new();
    for stored in running {
        let Some(job) = history::readable(log, &stored) else {
            continue;
        };
        let State::Running { attempt } = &job.record.state else {
            continue;
        };
        named.insert(job.id.to_string());
        if sharing == Sharing::Alone || &*attempt.worker.home == home {
            found.dead.push(job);
        }
    }
    for stored in queued {
        found.queued.extend(history::readable(log, &stored));
    }
    found.lanes = lanes.iter().filter_map(Lane::read).collect();
    if sharing == Sharing::Alone {
        // A damaged job that was dropped stays in its lane forever. With sharing, `remote_watch` checks lanes
        // that stay full.
        for (_, lane) in &mut found.lanes {
            lane.running.retain(|id| named.contains(id));
        }
    }
    Ok(found)
}

/// All heads of a kind, oldest first.
pub(crate) async fn all(
    log: &Log,
    kind: &str,
    status: Option<JobState>,
) -> Result<Vec<StoredHead>, LogError> {
    let mut all: Vec<StoredHead> = Vec::new();
    loop {
        let page = log
            .heads(HeadsQuery {
                kind: kind.into(),
                status: status.map(|status| status.as_str().into()),
                after: all.last().map(|stored| stored.stream.clone()),
                limit: PAGE,
                order: HeadsOrder::OldestFirst,
            })
            .await?;
        let is_last = page.len() < PAGE as usize;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}
