//! The end of a keeper and of a row, however it came about.

use std::time::{Duration, SystemTime};

use eventlog::Durability;
use kernel::Deadline;

use crate::ended::Exit;
use crate::keeper_process::KeeperProcess;
use crate::ledger::{Record, Row};
use crate::processes::ProcessesShared;
use crate::spawned::Spawned;
use crate::start::unix_ms;
use crate::sweep::{self, ProcessTraces, Session, SweepResult};

/// How long a keeper may take to kill its tree and exit after the daemon hangs up. It needs milliseconds, unless
/// the machine is very busy or the keeper is stuck.
const HANG_UP_LIMIT: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what the daemon kills itself.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// Whether something is left of a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leftovers {
    Nothing,
    Something,
}

/// Hangs up on a keeper, so that it kills its tree and exits, and makes sure that both are gone.
pub(crate) async fn hang_up(shared: &ProcessesShared, keeper: KeeperProcess, record: &Record) -> Leftovers {
    let keeper = keeper.hang_up();
    let ended = wait_for(shared, &keeper, HANG_UP_LIMIT).await;
    // A keeper that was killed at that moment leaves its tree behind. So does one that doesn't exit.
    let swept = match ended {
        WaitResult::Ended if keeper.ended_well() => SweepResult::default(),
        _ => sweep(shared, record).await,
    };
    reap(shared, keeper).await;
    match swept.left.is_empty() {
        true => Leftovers::Nothing,
        false => Leftovers::Something,
    }
}

/// Kills what is left of a child, including the keeper, which must not have been reaped.
pub(crate) async fn sweep(shared: &ProcessesShared, record: &Record) -> SweepResult {
    let traces = ProcessTraces {
        keeper: record.keeper,
        command: record.command,
        tag: record.tag.clone(),
        session: Session::IsTheKeepers,
    };
    let deadline = Deadline::after(&shared.clock, SWEEP_LIMIT);
    sweep::sweep(&[traces], &deadline).await.pop().unwrap_or_default()
}

/// Reaps a keeper, or another process of ours, that has ended or been killed.
pub(crate) async fn reap(shared: &ProcessesShared, process: Spawned) {
    if wait_for(shared, &process, SWEEP_LIMIT).await == WaitResult::InVain {
        tracing::error!(pid = process.identity.pid, "cannot kill one of our own processes");
    }
    process.reap();
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WaitResult {
    Ended,
    InVain,
}

async fn wait_for(shared: &ProcessesShared, keeper: &Spawned, limit: Duration) -> WaitResult {
    let limit = Deadline::after(&shared.clock, limit).passed();
    tokio::select! {
        biased;
        () = keeper.ended() => WaitResult::Ended,
        () = limit => WaitResult::InVain,
    }
}

/// Records the end and frees the row. It needn't be durable: the next daemon checks a row that claims too much
/// against the facts.
pub(crate) async fn close_row(
    shared: &ProcessesShared,
    mut row: Row,
    mut record: Record,
    exit: Option<Exit>,
) {
    record.ended_at_ms = Some(unix_ms(SystemTime::now()));
    record.exit = exit;
    let written = shared.ledger.write(&mut row, &record, Durability::Relaxed).await;
    if let Err(error) = written {
        tracing::warn!(%error, owner = record.owner, "could not record the end of a child");
    }
    shared.ledger.give_back(row);
}
