//! The life of a child, in one task: it starts the child, listens to its keeper, reads its standard error, passes
//! stop requests on, and doesn't end before everything of the child has.

use std::sync::Arc;
use std::time::Duration;

use eventlog::Durability;
use kernel::Deadline;

use crate::child::Child;
use crate::ended::{Ended, Exit, KeeperEnd, Killed};
use crate::entry::Entry;
use crate::finish;
use crate::pipes::Drain;
use crate::processes::ProcessesShared;
use crate::spec::{Spec, StopPlan};
use crate::start::{Answer, Running, start};
use crate::state::StopRequest;
use crate::wire::FromKeeper;

/// How much longer than planned a keeper may take before the daemon does its work.
const MARGIN: Duration = Duration::from_secs(5);

/// Runs a child from its start to its end.
pub(crate) async fn supervise(
    shared: Arc<ProcessesShared>,
    entry: Arc<Entry>,
    spec: Spec,
    mut answer: Answer,
) {
    let mut running = match start(&shared, &entry, spec, &mut answer).await {
        Ok(running) => running,
        Err(error) => {
            shared.leave(&entry);
            entry.advance(|life| life.on_failed());
            // The caller may be gone.
            drop(answer.send(Err(error)));
            return;
        }
    };
    entry.started.get_or_init(|| running.started);
    entry.advance(|life| life.on_started());
    let child = Child::new(Arc::clone(&entry), running.started);
    // A child that nobody takes is dropped here, and so is stopped.
    drop(answer.send(Ok(child)));
    let written = shared
        .ledger
        .write(&mut running.row, &running.record, Durability::Relaxed)
        .await;
    if let Err(error) = written {
        // The row names the keeper, which is enough to find the rest.
        tracing::warn!(%error, owner = running.record.owner, "could not record the pid of a child");
    }

    let Running {
        keeper,
        row,
        record,
        stderr,
        ..
    } = running;
    let mut watch = Watch {
        shared: &shared,
        entry: &entry,
        stderr: Drain::new(stderr),
        exit: None,
        gone: None,
        limit: Deadline::never(),
    };
    let keeper = watch.run(keeper).await;
    let ended = match watch.gone.take() {
        Some((killed, left)) => Ended {
            exit: watch.exit.unwrap_or(Exit::Unknown),
            killed,
            left,
            keeper: KeeperEnd::Reported,
        },
        None => {
            tracing::warn!(
                owner = record.owner,
                pid = keeper.identity.pid,
                "a keeper has failed; killing its tree"
            );
            let swept = finish::sweep(&shared, &record).await;
            Ended {
                exit: watch.exit.unwrap_or(Exit::Unknown),
                killed: swept.killed,
                left: swept.left,
                keeper: KeeperEnd::Died,
            }
        }
    };
    watch.stderr.rest(|bytes| entry.add_stderr(bytes));
    finish::reap(&shared, keeper).await;
    if !ended.left.is_empty() {
        tracing::error!(owner = record.owner, left = ?ended.left, "cannot kill processes of a child");
    }
    let exit = ended.exit;
    let ended = Arc::new(ended);
    shared.leave(&entry);
    entry.advance(|life| life.on_ended(&ended));
    finish::close_row(&shared, row, record, Some(exit)).await;
}

struct Watch<'child> {
    shared: &'child ProcessesShared,
    entry: &'child Entry,
    stderr: Drain,
    exit: Option<Exit>,
    /// The last message of the keeper: what had to be killed, and what couldn't be.
    gone: Option<(Killed, Vec<u32>)>,
    /// When the keeper must have exited.
    limit: Deadline,
}

impl Watch<'_> {
    /// Watches until the keeper is silent, or has had its time.
    async fn run(&mut self, mut keeper: crate::keeper_process::KeeperProcess) -> crate::spawned::Spawned {
        let (mut stdout, mut stderr) = (Drain::new(None), Drain::new(None));
        let mut told: Option<StopRequest> = None;
        loop {
            let limit = self.limit.clone();
            tokio::select! {
                biased;
                message = keeper.next() => match message {
                    Ok(message) => self.hear(message),
                    Err(_) => break,
                },
                life = self.entry.wait(move |life| life.stop_request() != told) => {
                    told = life.stop_request();
                    let Some(stop_request) = told else { continue };
                    // Nobody may want its output anymore, and it must not block on that.
                    stdout.pipe = self.entry.take_stdout().or(stdout.pipe.take());
                    stderr.pipe = self.entry.take_stderr().or(stderr.pipe.take());
                    let plan = stop_request.plan(self.shared.clock.now());
                    self.expect_end_within(plan.total());
                    if let Err(error) = keeper.stop(plan).await {
                        // The keeper has exited, and its last messages are still to be read. If there are none,
                        // the limit ends this.
                        tracing::debug!(%error, owner = self.entry.facts.owner, "a keeper no longer accepts messages");
                    }
                }
                () = limit.passed() => break,
                bytes = self.stderr.next() => self.entry.add_stderr(bytes),
                _ = stdout.next() => {}
                _ = stderr.next() => {}
            }
        }
        keeper.hang_up()
    }

    fn hear(&mut self, message: FromKeeper) {
        match message {
            FromKeeper::Exited { exit } => {
                self.exit = Some(exit);
                self.entry.advance(|life| life.on_exited(exit));
                self.expect_end_within(StopPlan::PROMPT.total());
            }
            FromKeeper::Gone { killed, left } => {
                self.gone = Some((killed, left));
                self.expect_end_within(Duration::ZERO);
            }
            FromKeeper::Started { .. } | FromKeeper::Failed { .. } => {
                tracing::warn!(owner = self.entry.facts.owner, "a keeper repeated a message");
            }
        }
    }

    /// Brings the limit closer; it never moves away.
    fn expect_end_within(&mut self, time: Duration) {
        let wanted = Deadline::after(&self.shared.clock, time.saturating_add(MARGIN));
        let is_earlier = match (wanted.remaining(), self.limit.remaining()) {
            (Some(wanted), Some(known)) => wanted < known,
            (wanted, None) => wanted.is_some(),
            (None, Some(_)) => false,
        };
        if is_earlier {
            self.limit = wanted;
        }
    }
}
