//! Sets up the jobs service of a daemon.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use jobs::{Handler, Jobs, JobsOptions, OpenJobsError, Sharing};
use kernel::Clock;
use process::{Processes, Tasks};
use protocol::BootId;

use super::{CommandHandler, Environments, Inputs, SandboxAccess};
use crate::durable::Durable;
use crate::plans::{CHECK, CheckHandler, FINISH, FinishHandler, JobsSlot, KillPoints, PlannedHandler, Watch};

pub(crate) const COMMAND: &str = "command";

/// How many jobs run at once by default.
const MAX_WORKERS: usize = 4;
/// How long a daemon may be silent before others take over its jobs. A restarted database is back by then.
const LEASE: Duration = Duration::from_secs(15);

/// Takes over the jobs of this log. Those that were running when their daemon died are marked as interrupted. Any
/// processes that an earlier daemon left running must have been killed before.
pub(crate) async fn start(
    durable: &Durable,
    (boot_id, chosen_workers): (BootId, Option<usize>),
    processes: &Processes,
    (environment, environments): (Vec<(OsString, OsString)>, &Environments),
    (access, inputs): (SandboxAccess, &Inputs),
    (watch, slot, kill): (&Watch, &JobsSlot, KillPoints),
    (tasks, clock): (&Tasks, &Arc<dyn Clock>),
) -> Result<Jobs, OpenJobsError> {
    let command = CommandHandler::new(
        processes.clone(),
        durable.log.clone(),
        // Commands don't need the settings of this daemon, and some of them are secret.
        (
            environment
                .into_iter()
                .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"TIDELOCK_"))
                .collect(),
            environments.clone(),
        ),
        (access, inputs.clone()),
        Arc::clone(clock),
    );
    let commands = Arc::new(command);
    let planned = PlannedHandler::new(Arc::clone(&commands), watch.clone());
    let checks = CheckHandler::new(commands, watch.clone());
    let finishes = FinishHandler::new(watch.clone(), durable.home_id, kill);
    let handlers: [(Arc<str>, Arc<dyn Handler>); 3] = [
        (Arc::from(COMMAND), Arc::new(planned)),
        (Arc::from(CHECK), Arc::new(checks)),
        (Arc::from(FINISH), Arc::new(finishes)),
    ];
    let jobs = Jobs::open(JobsOptions {
        log: durable.log.clone(),
        sharing: match durable.engine {
            protocol::LogEngine::Sqlite => Sharing::Alone,
            protocol::LogEngine::Postgres => Sharing::WithOthers,
        },
        home_id: durable.home_id,
        boot_id,
        handlers: BTreeMap::from(handlers),
        max_workers: chosen_workers.unwrap_or(MAX_WORKERS),
        lease: LEASE,
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
    })
    .await?;
    environments.take_over(&jobs).await?;
    slot.fill(&jobs);
    Ok(jobs)
}
