//! Sets up the plans service of a daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Deadline};
use plans::{PlanError, Plans, PlansOptions, PlansSettings};
use process::{Processes, Tasks};

use crate::durable::Durable;

/// How long a start waits for the recovery of what an earlier daemon left unfinished. Most of it takes a moment, so the
/// first requests find it done. What takes longer continues while requests are served.
const RECOVERY_GRACE: Duration = Duration::from_secs(5);

/// Opens the plans of this log, and starts to recover what an earlier daemon left unfinished. Any processes that it
/// left running must have been killed before.
pub(crate) async fn start(
    durable: &Durable,
    processes: &Processes,
    (directory, guarded, settings): (PathBuf, Vec<PathBuf>, PlansSettings),
    environment: &[(OsString, OsString)],
    (tasks, clock): (&Tasks, &Arc<dyn Clock>),
) -> Result<Plans, PlanError> {
    let (plans, mut recovered) = Plans::open(PlansOptions {
        log: durable.log.clone(),
        directory,
        guarded,
        home_id: durable.home_id,
        processes: processes.clone(),
        settings,
        environment: environment.iter().cloned().collect::<BTreeMap<_, _>>(),
        steps: super::killing::steps(environment),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
    })
    .await?;
    let said = tasks.to_the_end("recovery", async move {
        for note in recovered.notes().await {
            tracing::warn!(note, "something that an earlier daemon left was set right");
        }
    });
    tokio::select! {
        biased;
        _ = said => {}
        () = Deadline::after(clock, RECOVERY_GRACE).passed() => {
            for recovery in plans.recovering() {
                tracing::warn!(what = recovery.what, of = ?recovery.of, "the daemon serves while this is set right");
            }
        }
    }
    Ok(plans)
}
