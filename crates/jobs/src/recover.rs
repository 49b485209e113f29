//! Recovery at start: makes the jobs in the log match reality.
//!
//! A job in state running with a dead worker is interrupted before any request is served. Which workers are
//! dead is a fact, not a guess: without sharing, all others; with sharing, those with this home, because a home
//! has one daemon at a time. The workers of other homes are left to `remote_watch`, which checks their leases.

use std::{collections::BTreeSet, sync::Arc};

use eventlog::{Log, LogError};
use protocol::JobState;

use crate::{
    dispatch::Lane,
    history,
    job::{Job, State},
    service::Sharing,
};

/// The jobs and lanes in the log.
#[derive(Debug, Default)]
pub(crate) struct JobScan {
    pub(crate) queued: Vec<Job>,
    /// Running jobs with a dead worker.
    pub(crate) dead: Vec<Job>,
    pub(crate) lanes: Vec<(Arc<str>, Lane)>,
}

/// Reads the jobs and lanes.
pub(crate) async fn recover(log: &Log, sharing: Sharing, home: &str) -> Result<JobScan, LogError> {
    let mut found = JobScan::default();
    // A job that starts to run in the meantime belongs to another home; this daemon isn't serving requests
    // yet.
    let (running, queued, lanes) = tokio::try_join!(
        Job::all(log, Some(JobState::Running.as_str())),
        Job::all(log, Some(JobState::Queued.as_str())),
        log.all_heads(history::LANE_KIND, None),
    )?;
    let mut named: BTreeSet<String> = BTreeSet::new();
    found.queued = queued;
    for job in running {
        let State::Running { attempt } = &job.record.state else {
            continue;
        };
        named.insert(job.id.to_string());
        if sharing == Sharing::Alone || &*attempt.worker.home == home {
            found.dead.push(job);
        }
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
