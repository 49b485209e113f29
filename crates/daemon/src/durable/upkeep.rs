//! The upkeep of the log: drops what is old, collects what nothing refers to, and returns space to the file system.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Log, LogError, RetentionPolicy};
use jobs::{GcPolicy, Jobs};
use kernel::{Clock, Deadline, Scope};
use plans::{Plans, Run};
use sessions::Sessions;

use crate::context::ContextService;

use super::{boots, health::Health, history};

/// How long the daemon keeps events about itself.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);

const JOBS: GcPolicy = GcPolicy {
    older_than: Duration::from_secs(14 * 24 * 60 * 60),
    output_budget_bytes: Some(4 * 1024 * 1024 * 1024),
    keep_newest: 100,
};

/// Sandboxes to remove: those of plans that ended a day ago. A sandbox with unapplied work stays.
const PLANS: plans::GcPolicy = plans::GcPolicy {
    older_than: Duration::from_secs(24 * 60 * 60),
    run: Run::Real,
};

/// How long a turn keeps its individual events after it ends. Later readers get its transcript.
const TURNS_OVER_FOR: Duration = Duration::from_secs(60 * 60);

/// How long after the end of its turn a prompt can be repeated with the same idempotency key.
const KEYS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    pub(crate) log: Log,
    pub(crate) jobs: Jobs,
    pub(crate) plans: Plans,
    pub(crate) sessions: Sessions,
    pub(crate) contexts: ContextService,
}

/// Cleans up now and then once per `every`, until the scope is cancelled.
pub(crate) async fn keep_up(
    subjects: Subjects,
    health: Arc<Health>,
    clock: Arc<dyn Clock>,
    every: Duration,
    closing: Scope,
) {
    loop {
        tokio::select! {
            // The rest is done the next time.
            _ = closing.wait() => return,
            done = tidy_up(&subjects, &health) => {
                if let Err(error) = done {
                    tracing::warn!(%error, "the upkeep of the log failed");
                }
            }
        }
        tokio::select! {
            _ = closing.wait() => return,
            () = Deadline::after(&clock, every).passed() => {}
        }
    }
}

async fn tidy_up(subjects: &Subjects, health: &Health) -> Result<(), LogError> {
    let Subjects {
        log,
        jobs,
        plans,
        sessions,
        contexts,
    } = subjects;
    let mut dropped_events = 0;
    for kind in [boots::KIND, history::KIND] {
        let policy = RetentionPolicy {
            max_age: Some(KEPT_FOR),
            max_bytes_per_stream: None,
        };
        let trimmed = log.trim(kind, policy).await?;
        dropped_events += trimmed.iter().map(|(_, trimmed)| trimmed.events).sum::<u64>();
    }
    let forgotten = jobs.collect(JOBS).await?;
    // Before the blobs, which plans refer to. A sandbox that can't be removed doesn't stop the rest.
    match plans.collect(PLANS).await {
        Ok(freed) if !freed.sandboxes.is_empty() || freed.bases > 0 => {
            let sandboxes = freed.sandboxes.len();
            tracing::info!(
                sandboxes,
                bases = freed.bases,
                bytes = freed.bytes,
                "removed sandboxes"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "could not remove unused sandboxes"),
    }
    match plans.forget_old().await {
        Ok(forgotten) if forgotten.plans > 0 => {
            tracing::info!(
                plans = forgotten.plans,
                bytes = forgotten.bytes,
                "removed plans that were applied or discarded long ago"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "could not remove old plans"),
    }
    match sessions.compact(TURNS_OVER_FOR).await {
        Ok(folded) if folded.turns > 0 => {
            tracing::info!(turns = folded.turns, events = folded.events, "compacted turns");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "could not compact turns"),
    }
    match sessions.collect_keys(KEYS_KEPT_FOR).await {
        Ok(0) => {}
        Ok(keys) => tracing::info!(keys, "removed idempotency keys of old turns"),
        Err(error) => tracing::warn!(%error, "could not remove idempotency keys of old turns"),
    }
    // An index is a cache, so one that stays only takes space.
    match contexts.collect().await {
        Ok(0) => {}
        Ok(indexes) => tracing::info!(indexes, "removed unused indexes"),
        Err(error) => tracing::warn!(%error, "could not remove unused indexes"),
    }
    let collected = log.collect_blobs().await?;
    log.compact().await?;
    let sizes = health.measure().await?;
    tracing::info!(
        dropped_events,
        forgotten_jobs = forgotten.jobs,
        freed_blobs = collected.blobs,
        total_bytes = sizes.total_bytes,
        "log upkeep done"
    );
    Ok(())
}
