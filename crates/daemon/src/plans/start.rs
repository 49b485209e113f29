//! How the service of plans is put together for a daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::Clock;
use plans::{PlanError, Plans, PlansOptions, PlansSettings};
use process::{Processes, Tasks};

use crate::durable::Durable;

/// Opens the plans of this log. What an earlier daemon left half-way is set right, so what it left running must have
/// been killed before.
pub(crate) async fn start(
    durable: &Durable,
    processes: &Processes,
    (directory, settings): (PathBuf, PlansSettings),
    environment: &[(OsString, OsString)],
    (tasks, clock): (&Tasks, &Arc<dyn Clock>),
) -> Result<Plans, PlanError> {
    let (plans, notes) = Plans::open(PlansOptions {
        log: durable.log.clone(),
        directory,
        home_id: durable.home_id,
        processes: processes.clone(),
        settings,
        environment: environment.iter().cloned().collect::<BTreeMap<_, _>>(),
        steps: super::killing::steps(environment),
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
    })
    .await?;
    for note in notes {
        tracing::warn!(note, "something that an earlier daemon left was set right");
    }
    Ok(plans)
}
