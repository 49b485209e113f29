//! Starts a child: keeper, row, command, in this order. The row is durable before the command can run.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventlog::{CommitError, Durability};
use kernel::Deadline;
use tokio::sync::oneshot;

use crate::child::Child;
use crate::descriptors;
use crate::entry::{Entry, Started, UntakenStreams};
use crate::error::SpawnError;
use crate::finish::{self, Leftovers};
use crate::keeper_process::KeeperProcess;
use crate::ledger::{Record, Row};
use crate::outlet::Outlet;
use crate::pipes::Pipes;
use crate::private::is_private;
use crate::processes::ProcessesShared;
use crate::spec::{Confinement, Spec, StandardError};
use crate::sweep::TAG_VARIABLE;
use crate::view::View;
use crate::wire::{FromKeeper, OsText, Run, Stage};

/// How long a keeper may take to start its command. A file system that hangs can delay it.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The pause before the ledger is written again. While it can't connect, the engine itself waits longer.
const ENTER_AGAIN: Duration = Duration::from_millis(100);
/// How much of owner and reason is shown in a process list.
const LABEL_CHARS: usize = 80;

/// The channel for the answer. If it is closed, nobody wants the child anymore.
pub(crate) type Answer = oneshot::Sender<Result<Child, SpawnError>>;

/// A child that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) keeper: KeeperProcess,
    pub(crate) row: Row,
    pub(crate) record: Record,
    /// The standard error, if the last of it is to be kept.
    pub(crate) stderr: Option<Outlet>,
    pub(crate) started: Started,
}

/// Starts a child. If it fails, nothing is left of it.
pub(crate) async fn start(
    shared: &Arc<ProcessesShared>,
    entry: &Arc<Entry>,
    spec: Spec,
    answer: &mut Answer,
) -> Result<Running, SpawnError> {
    let pipes = Pipes::make(spec.terminal, spec.stderr).map_err(SpawnError::Means)?;
    let mut row = shared.ledger.reserve();
    let keeper = match KeeperProcess::start(&shared.keeper, label(&spec)).await {
        Ok(keeper) => keeper,
        Err(error) => {
            shared.ledger.give_back(row);
            return Err(SpawnError::Means(error));
        }
    };
    entry.keeper.get_or_init(|| keeper.identity());
    let mut record = record(shared, entry, &keeper);
    // This is the gate: the keeper doesn't know its command yet.
    let launched = match enter(shared, entry, (&mut row, &record), answer).await {
        Ok(()) => launch(shared, entry, (keeper, pipes), spec, answer).await,
        Err(error) => Err((error, keeper)),
    };
    match launched {
        Ok((keeper, stderr, started)) => {
            record.command = Some(started.command);
            Ok(Running {
                keeper,
                row,
                record,
                stderr,
                started,
            })
        }
        Err((error, keeper)) => {
            let left = finish::hang_up(shared, keeper, &record).await;
            if left == Leftovers::Something {
                tracing::error!(owner = record.owner, "cannot kill a child that failed to start");
            }
            finish::close_row(shared, row, record, None).await;
            Err(error)
        }
    }
}

/// Enters a child in the ledger. While the log can't be reached, it waits for a while, as long as somebody wants
/// the child.
async fn enter(
    shared: &ProcessesShared,
    entry: &Entry,
    (row, record): (&mut Row, &Record),
    answer: &mut Answer,
) -> Result<(), SpawnError> {
    let mut limit = pin!(Deadline::after(&shared.clock, START_LIMIT).passed());
    loop {
        let written = shared.ledger.write(row, record, Durability::Durable);
        let refused = match written.await {
            Ok(()) => return Ok(()),
            Err(CommitError::Log(error)) if error.is_outage() => CommitError::Log(error),
            Err(refused) => return Err(SpawnError::Ledger(refused)),
        };
        tokio::select! {
            biased;
            () = answer.closed() => return Err(SpawnError::Stopped),
            _ = entry.wait(|life| life.stop_request().is_some()) => return Err(SpawnError::Stopped),
            () = &mut limit => return Err(SpawnError::Ledger(refused)),
            () = Deadline::after(&shared.clock, ENTER_AGAIN).passed() => {}
        }
    }
}

/// Hands the command over and waits for it to run. If the caller goes away or the child is stopped, the keeper is
/// returned to be ended.
async fn launch(
    shared: &ProcessesShared,
    entry: &Entry,
    (mut keeper, pipes): (KeeperProcess, Pipes),
    spec: Spec,
    answer: &mut Answer,
) -> Result<(KeeperProcess, Option<Outlet>, Started), (SpawnError, KeeperProcess)> {
    let limit = Deadline::after(&shared.clock, START_LIMIT).passed();
    let (program, directory) = (spec.program.clone(), spec.directory.clone());
    let (stderr_goes, view) = (spec.stderr, spec.view.clone());
    let run = to_wire(spec, &entry.facts.tag);
    let told = tokio::select! {
        biased;
        () = answer.closed() => Err(SpawnError::Stopped),
        _ = entry.wait(|life| life.stop_request().is_some()) => Err(SpawnError::Stopped),
        told = exchange(&mut keeper, run, pipes.theirs, view) => told.map_err(SpawnError::Keeper),
        () = limit => Err(SpawnError::Keeper(io::ErrorKind::TimedOut.into())),
    };
    let failed = match told {
        Ok(FromKeeper::Started { command, confinement }) => {
            let (kept, handed_out) = match stderr_goes {
                StandardError::KeptAsTail => (pipes.stderr, None),
                StandardError::HandedOut | StandardError::WithOutput => (None, pipes.stderr),
            };
            entry.offer(UntakenStreams {
                stdin: Some(pipes.stdin),
                stdout: Some(pipes.stdout),
                stderr: handed_out,
            });
            let started = Started { command, confinement };
            return Ok((keeper, kept, started));
        }
        Ok(FromKeeper::Failed { stage, errno }) => {
            let source = io::Error::from_raw_os_error(errno);
            match stage {
                Stage::Program => SpawnError::Program { program, source },
                Stage::Directory => SpawnError::Directory { directory, source },
                Stage::Limits => SpawnError::Limits(source),
                Stage::Confinement => SpawnError::Confinement(source),
                Stage::Keeper => SpawnError::Keeper(source),
            }
        }
        Ok(FromKeeper::Exited { .. } | FromKeeper::Gone { .. }) => {
            SpawnError::Keeper(io::ErrorKind::InvalidData.into())
        }
        Err(error) => error,
    };
    Err((failed, keeper))
}

/// Our copies of the command's pipe ends and view are closed as soon as the keeper has them.
async fn exchange(
    keeper: &mut KeeperProcess,
    run: Run,
    theirs: [std::os::fd::OwnedFd; 3],
    view: Option<View>,
) -> io::Result<FromKeeper> {
    keeper.run(run, theirs, view.as_ref()).await?;
    drop(view);
    keeper.next().await
}

fn to_wire(spec: Spec, tag: &str) -> Run {
    let text = |text: &std::ffi::OsStr| OsText::from(text);
    let named = spec
        .environment
        .iter()
        .filter(|(name, _)| !is_private(name))
        .map(|(name, value)| (text(name), text(value)));
    let ours = (
        OsText::Utf8(TAG_VARIABLE.to_owned()),
        OsText::Utf8(tag.to_owned()),
    );
    Run {
        program: text(spec.program.as_os_str()),
        arguments: spec.arguments.iter().map(|argument| text(argument)).collect(),
        directory: text(spec.directory.as_os_str()),
        environment: named.chain([ours]).collect(),
        limits: spec.limits,
        open_files_before: descriptors::before_raise(),
        write_below: match spec.confinement {
            Confinement::None => None,
            Confinement::WriteBelow(paths) => Some(paths.iter().map(|path| text(path.as_os_str())).collect()),
        },
    }
}

/// Owner and reason. NUL characters are removed, because they would end an argument.
fn label(spec: &Spec) -> String {
    let text = format!("{}: {}", spec.owner, spec.reason);
    text.chars()
        .filter(|character| !character.is_control())
        .take(LABEL_CHARS)
        .collect()
}

fn record(shared: &ProcessesShared, entry: &Entry, keeper: &KeeperProcess) -> Record {
    let facts = &entry.facts;
    Record {
        tag: facts.tag.clone(),
        machine_boot_id: shared.machine_boot_id.clone(),
        daemon_boot_id: shared.daemon_boot_id.clone(),
        keeper: keeper.identity(),
        command: None,
        owner: facts.owner.clone(),
        reason: facts.reason.clone(),
        generation: facts.generation,
        argv: facts.argv.clone(),
        started_at_ms: unix_ms(facts.started_at),
        ended_at_ms: None,
        exit: None,
    }
}

pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
