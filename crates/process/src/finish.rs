//! The end of a keeper and of a row, on whichever way it came.

use std::time::{Duration, SystemTime};

use eventlog::Durability;
use kernel::Deadline;

use crate::ended::Exit;
use crate::keeper_process::KeeperProcess;
use crate::ledger::{Record, Row, Status};
use crate::processes::Shared;
use crate::remains::{self, Session, Swept, Traces};
use crate::spawned::Spawned;
use crate::start::unix_ms;

/// How long a keeper may take to kill its tree and end, once it has been left alone. It needs milliseconds, unless the
/// machine is very busy or the keeper is stuck.
const HANG_UP_LIMIT: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what the daemon kills itself.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// Whether something is left of a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Left {
    Nothing,
    Something,
}

/// Leaves a keeper alone, so that it kills its tree and ends, and sees to it that both are gone.
pub(crate) async fn hang_up(shared: &Shared, keeper: KeeperProcess, record: &Record) -> Left {
    let keeper = keeper.hang_up();
    let ended = wait_for(shared, &keeper, HANG_UP_LIMIT).await;
    // A keeper that was killed in that instant leaves its tree. So does one that does not end.
    let swept = match ended {
        Waited::Ended if keeper.ended_well() => Swept::default(),
        _ => sweep(shared, record).await,
    };
    reap(shared, keeper).await;
    match swept.left.is_empty() {
        true => Left::Nothing,
        false => Left::Something,
    }
}

/// Kills what is left of a child, keeper included. The keeper must not have been reaped.
pub(crate) async fn sweep(shared: &Shared, record: &Record) -> Swept {
    let traces = Traces {
        keeper: record.keeper,
        command: record.command,
        tag: record.tag.clone(),
        session: Session::IsTheKeepers,
    };
    let deadline = Deadline::after(&shared.clock, SWEEP_LIMIT);
    remains::sweep(&[traces], &deadline)
        .await
        .pop()
        .unwrap_or_default()
}

/// Reaps a keeper, or another process of ours, that has ended or been killed.
pub(crate) async fn reap(shared: &Shared, process: Spawned) {
    if wait_for(shared, &process, SWEEP_LIMIT).await == Waited::InVain {
        tracing::error!(pid = process.identity.pid, "a process of ours cannot be killed");
    }
    process.reap();
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Waited {
    Ended,
    InVain,
}

async fn wait_for(shared: &Shared, keeper: &Spawned, limit: Duration) -> Waited {
    let limit = Deadline::after(&shared.clock, limit).passed();
    tokio::select! {
        biased;
        () = keeper.ended() => Waited::Ended,
        () = limit => Waited::InVain,
    }
}

/// Writes the end down and lets others use the row. The end need not be on disk: a row that says too much is checked
/// against the facts by the next daemon.
pub(crate) async fn close_row(shared: &Shared, mut row: Row, mut record: Record, exit: Option<Exit>) {
    record.ended_at_ms = Some(unix_ms(SystemTime::now()));
    record.exit = exit;
    let written = shared
        .ledger
        .write(&mut row, Status::Ended, &record, Durability::Relaxed)
        .await;
    if let Err(error) = written {
        tracing::warn!(%error, owner = record.owner, "the end of a child could not be written down");
    }
    shared.ledger.give_back(row);
}
