//! The upkeep of the log: what is old is dropped, what nobody refers to is collected, and space is given back.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Log, LogError, RetentionPolicy};
use jobs::{GcPolicy, Jobs};
use kernel::{Clock, Deadline, Scope};
use plans::{Plans, Run};
use sessions::Sessions;

use crate::context::ContextService;

use super::{boots, health::Health, history};

/// How long events are kept of what the daemon writes about itself.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Which jobs are forgotten. Whoever wants to keep more of them keeps their output elsewhere.
const JOBS: GcPolicy = GcPolicy {
    older_than: Duration::from_secs(14 * 24 * 60 * 60),
    output_budget_bytes: Some(4 * 1024 * 1024 * 1024),
    keep_newest: 100,
};

/// Which sandboxes are taken away: those of plans that were over for a day. One with unapplied work stays.
const PLANS: plans::GcPolicy = plans::GcPolicy {
    older_than: Duration::from_secs(24 * 60 * 60),
    run: Run::Real,
};

/// How long the events of a turn that is over stay one by one. Whoever comes back to it later gets it as a whole.
const TURNS_OVER_FOR: Duration = Duration::from_secs(60 * 60);

/// How long a prompt can be sent again with the same idempotency key, from the end of its turn on.
const KEYS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

const POLICIES: [(&str, RetentionPolicy); 2] = [
    (
        boots::KIND,
        RetentionPolicy {
            max_age: Some(KEPT_FOR),
            max_bytes_per_stream: None,
        },
    ),
    (
        history::KIND,
        RetentionPolicy {
            max_age: Some(KEPT_FOR),
            max_bytes_per_stream: None,
        },
    ),
];

/// What is tidied up.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    pub(crate) log: Log,
    pub(crate) jobs: Jobs,
    pub(crate) plans: Plans,
    pub(crate) sessions: Sessions,
    pub(crate) contexts: ContextService,
}

/// Tidies up now and each time that `every` has passed, until the scope is cancelled.
pub(crate) async fn keep_up(
    subjects: Subjects,
    health: Arc<Health>,
    clock: Arc<dyn Clock>,
    every: Duration,
    closing: Scope,
) {
    loop {
        tokio::select! {
            // What is dropped half-way is done the next time.
            _ = closing.wait() => return,
            done = tidy_up(&subjects, &health) => {
                if let Err(error) = done {
                    tracing::warn!(%error, "the upkeep of the log was broken off");
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
    for (kind, policy) in POLICIES {
        let trimmed = log.trim(kind, policy).await?;
        dropped_events += trimmed.iter().map(|(_, trimmed)| trimmed.events).sum::<u64>();
    }
    let forgotten = jobs.collect(JOBS).await?;
    // Before the blobs, which some of it refers to. A sandbox that cannot be removed does not keep the log untidy.
    match plans.collect(PLANS).await {
        Ok(freed) if !freed.sandboxes.is_empty() || freed.bases > 0 => {
            let sandboxes = freed.sandboxes.len();
            tracing::info!(
                sandboxes,
                bases = freed.bases,
                bytes = freed.bytes,
                "sandboxes were taken away"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "sandboxes that nobody needs could not be taken away"),
    }
    match plans.forget_old().await {
        Ok(forgotten) if forgotten.plans > 0 => {
            tracing::info!(
                plans = forgotten.plans,
                bytes = forgotten.bytes,
                "plans that were applied or discarded long ago were forgotten"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "old plans could not be forgotten"),
    }
    // A turn that cannot be folded together stays as it is.
    match sessions.compact(TURNS_OVER_FOR).await {
        Ok(folded) if folded.turns > 0 => {
            tracing::info!(
                turns = folded.turns,
                events = folded.events,
                "turns were folded together"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "turns could not be folded together"),
    }
    match sessions.collect_keys(KEYS_KEPT_FOR).await {
        Ok(0) => {}
        Ok(keys) => tracing::info!(keys, "idempotency keys of old turns were forgotten"),
        Err(error) => tracing::warn!(%error, "idempotency keys of old turns could not be forgotten"),
    }
    // An index is a cache; one that stays costs room and nothing else.
    match contexts.collect().await {
        Ok(0) => {}
        Ok(indexes) => tracing::info!(indexes, "indexes that nobody asked for were thrown away"),
        Err(error) => tracing::warn!(%error, "indexes that nobody asked for could not be thrown away"),
    }
    let collected = log.collect_blobs().await?;
    log.compact().await?;
    let sizes = health.measure().await?;
    tracing::info!(
        dropped_events,
        forgotten_jobs = forgotten.jobs,
        freed_blobs = collected.blobs,
        total_bytes = sizes.total_bytes,
        "the log was tidied up"
    );
    Ok(())
}
