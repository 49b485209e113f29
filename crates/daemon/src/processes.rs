//! Owned processes, as this daemon opens, shows and ends them.

use std::sync::Arc;
use std::time::SystemTime;

use kernel::Clock;
use process::{KeeperProgram, OpenProcessesError, ProcessInfo, Processes, ProcessesOptions, StopPlan, Tasks};
use protocol::BootId;

use crate::app::whole_ms;
use crate::durable::Durable;
use crate::times;

/// What is still there when the daemon ends has had its chance: everybody who uses it has been answered.
pub(crate) const AT_THE_END: StopPlan = StopPlan::PROMPT;

/// Takes the processes of this home over. What an earlier daemon left running is killed.
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

/// All of them, for the wire. It reads from `/proc`, which other tasks need not wait for.
pub(crate) async fn list(processes: &Processes) -> Vec<protocol::Process> {
    let processes = processes.clone();
    let list = tokio::task::spawn_blocking(move || processes.list()).await;
    // It fails only when the daemon is ending, and then there are none.
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

/// A process for the wire: there its start is a text, and its age belongs to the moment at which it is shown.
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
