//! Takes over from an earlier daemon: kills what it left running, and only that.
//!
//! An open row names a keeper and a command by pid and start time, within one boot of the machine, and a tag that
//! is in the environment of everything below them. What matches is ours. A reused pid, or a row from before a
//! reboot, matches nothing and is left alone.

use std::time::Duration;

use eventlog::CommitError;
use kernel::Deadline;

use crate::error::OpenProcessesError;
use crate::ledger::OpenRow;
use crate::processes::ProcessesShared;
use crate::start::unix_ms;
use crate::sweep::{ProcessTraces, Session, sweep};

/// How long the kernel may take to end what is killed. Nothing is served before that.
const RECLAIM_LIMIT: Duration = Duration::from_secs(5);

/// What was found of an earlier daemon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reclaimed {
    /// Children that were still there, and have been killed.
    pub killed: u64,
    /// Children that had ended without a record of it.
    pub gone_already: u64,
    /// Children that couldn't be killed. The next start tries again.
    pub left: u64,
}

/// Kills what is left of these rows, and closes them.
pub(crate) async fn reclaim(
    shared: &ProcessesShared,
    open: Vec<OpenRow>,
) -> Result<Reclaimed, OpenProcessesError> {
    let mut reclaimed = Reclaimed::default();
    let (here, elsewhere): (Vec<_>, Vec<_>) = open
        .into_iter()
        .partition(|open| open.record.machine_boot_id == shared.machine_boot_id);
    let traces: Vec<_> = here.iter().map(traces).collect();
    let deadline = Deadline::after(&shared.clock, RECLAIM_LIMIT);
    let swept = match traces.is_empty() {
        true => Vec::new(),
        false => sweep(&traces, &deadline).await,
    };
    for (open, swept) in here.into_iter().zip(swept) {
        let record = &open.record;
        if !swept.left.is_empty() {
            reclaimed.left += 1;
            tracing::error!(owner = record.owner, left = ?swept.left, "cannot kill a child of an earlier daemon");
            continue;
        }
        if swept.found_something() {
            reclaimed.killed += 1;
            tracing::warn!(
                owner = record.owner,
                reason = record.reason,
                processes = swept.killed.count,
                "killed a child of an earlier daemon"
            );
        } else {
            reclaimed.gone_already += 1;
        }
        close(shared, open).await?;
    }
    for open in elsewhere {
        reclaimed.gone_already += 1;
        close(shared, open).await?;
    }
    Ok(reclaimed)
}

fn traces(open: &OpenRow) -> ProcessTraces {
    ProcessTraces {
        keeper: open.record.keeper,
        command: open.record.command,
        tag: open.record.tag.clone(),
        session: Session::MayBeAnothers,
    }
}

async fn close(
    shared: &ProcessesShared,
    OpenRow { mut row, mut record }: OpenRow,
) -> Result<(), OpenProcessesError> {
    record.ended_at_ms = Some(unix_ms(std::time::SystemTime::now()));
    match shared
        .ledger
        .write(&mut row, &record, eventlog::Durability::Durable)
        .await
    {
        Ok(()) => shared.ledger.give_back(row),
        // Somebody has written it in the meantime, and so knows more than we saw. It belongs to them.
        Err(CommitError::Conflict { stream, .. }) => {
            tracing::warn!(%stream, "a row of the ledger was written by somebody else");
        }
        Err(error) => return Err(OpenProcessesError::Write(error)),
    }
    Ok(())
}
