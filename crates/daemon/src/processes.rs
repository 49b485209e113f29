//! The processes that this daemon owns: opens, lists and ends them.

use std::sync::Arc;
use std::time::SystemTime;

use kernel::Clock;
use process::{KeeperProgram, OpenProcessesError, ProcessInfo, Processes, ProcessesOptions, StopPlan, Tasks};
use protocol::BootId;

use crate::app::whole_ms;
use crate::durable::Durable;
use crate::times;

/// How to stop processes that are left when the daemon ends. Everything that used them has been answered, so they get
/// little time.
pub(crate) const AT_THE_END: StopPlan = StopPlan::PROMPT;

/// Takes over the processes of this home. Those that an earlier daemon left running are killed.
pub(crate) async fn open(
    durable: &Durable,
    boot_id: BootId,
    keeper: KeeperProgram,
    tasks: &Tasks,
    clock: &Arc<dyn Clock>,
) -> Result<Processes, OpenProcessesError> {
    Processes::open(ProcessesOptions {
        log: durable.own_log.clone(),
        home_id: durable.home_id,
        boot_id,
        keeper,
        tasks: tasks.clone(),
        clock: Arc::clone(clock),
    })
    .await
}

/// All processes, for the wire. It reads from `/proc`, so it runs on a blocking thread.
pub(crate) async fn list(processes: &Processes) -> Vec<protocol::Process> {
    let processes = processes.clone();
    let list = tokio::task::spawn_blocking(move || processes.list()).await;
    // It fails only if the daemon is ending, and then there are no processes.
    list.unwrap_or_default().into_iter().map(to_wire).collect()
}

pub(crate) fn summary(processes: &Processes) -> protocol::ProcessSummary {
    let reclaimed = processes.reclaimed();
    protocol::ProcessSummary {
        owned: processes.count() as u64,
        reclaimed: reclaimed.killed,
        unreclaimed: reclaimed.left,
    }
}

/// A process for the wire, with its start time as text and its age as of now.
pub(crate) fn to_wire(info: ProcessInfo) -> protocol::Process {
    let age = SystemTime::now()
        .duration_since(info.started_at)
        .unwrap_or_default();
    protocol::Process {
        id: info.id,
        state: info.state,
        pid: info.pid,
        keeper_pid: info.keeper_pid,
        owner: info.owner,
        reason: info.reason,
        generation: info.generation,
        restarts: info.restarts,
        started_at: times::rfc3339(info.started_at),
        age_ms: whole_ms(age),
        processes: info.processes as u64,
        rss_bytes: info.rss_bytes,
        argv: info.argv,
        confinement: info.confinement,
    }
}
