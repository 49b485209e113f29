//! The second thread of a keeper: it listens to the daemon, follows the stop plan, and signals the tree.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::plan::{Due, Plan};
use super::report::Report;
use crate::ended::NAMED_PROCESSES;
use crate::identity::{Identity, SignalResult, Target};
use crate::proc_table;
use crate::sweep::HALT_SCANS;
use crate::wire::{Inbox, ToKeeper};

/// Enough for any message but the first one.
const READ_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Daemon {
    Alive,
    Dead,
}

/// Runs until the process ends.
pub(super) fn run(socket: &UnixStream, notices: &OwnedFd, report: &Report) {
    let (mut plan, mut inbox, mut daemon) = (Plan::default(), Inbox::default(), Daemon::Alive);
    let mut tree = Tree::default();
    loop {
        let happened = wait(socket, notices, daemon, plan.next_look(Instant::now()));
        let now = Instant::now();
        if happened.command_ended {
            // There is one notice in a life; if it can't be read, it is read again.
            let _ = rustix::io::read(notices, &mut [0; 16]);
            plan.command_ended(now);
        }
        if happened.daemon_spoke && listen(socket, &mut inbox, &mut plan, now).is_err() {
            daemon = Daemon::Dead;
            plan.abandoned(now);
        }
        match plan.due(now) {
            Due::Nothing => {}
            Due::Term => tree.term(),
            Due::Kill => tree.kill(report),
            Due::GiveUp => report.say_last_and_exit(tree.alive()),
        }
    }
}

#[derive(Debug)]
struct Happened {
    daemon_spoke: bool,
    command_ended: bool,
}

fn wait(socket: &UnixStream, notices: &OwnedFd, daemon: Daemon, until: Option<Instant>) -> Happened {
    let timeout = until.map(|until| {
        let rest = until.saturating_duration_since(Instant::now());
        // Rounded up, so that the time has come when the wait is over. What doesn't fit is as good as forever.
        Timespec::try_from(rest + Duration::from_micros(1)).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        })
    });
    let mut polled = vec![PollFd::new(notices, PollFlags::IN)];
    if daemon == Daemon::Alive {
        polled.push(PollFd::new(socket, PollFlags::IN));
    }
    // Interrupted or not, the state is checked after waking up.
    let _ = poll(&mut polled, timeout.as_ref());
    let has = |index: usize| polled.get(index).is_some_and(|one| !one.revents().is_empty());
    Happened {
        daemon_spoke: has(1),
        command_ended: has(0),
    }
}

/// Handles messages from the daemon. After an error there are no more.
fn listen(mut socket: &UnixStream, inbox: &mut Inbox, plan: &mut Plan, now: Instant) -> io::Result<()> {
    let mut bytes = [0; READ_BYTES];
    let count = socket.read(&mut bytes)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    inbox.add(&bytes[..count]);
    while let Some(message) = inbox.take()? {
        match message {
            ToKeeper::Stop {
                polite_ms,
                term_ms,
                kill_ms,
            } => plan.stop(
                now,
                Duration::from_millis(polite_ms),
                Duration::from_millis(term_ms),
                Duration::from_millis(kill_ms),
            ),
            ToKeeper::Run(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

/// Everything below this process, and which signals it was sent.
#[derive(Debug, Default)]
struct Tree {
    told: BTreeSet<Identity>,
    killed: BTreeSet<Identity>,
}

impl Tree {
    /// Sends SIGTERM once to each process. A stopped process would receive it only when it continues, so it is
    /// continued.
    fn term(&mut self) {
        for (identity, _, target) in members() {
            if self.told.insert(identity) {
                target.signal(Signal::TERM);
                target.signal(Signal::CONT);
            }
        }
    }

    fn kill(&mut self, report: &Report) {
        // New processes since the last scan appear faster than we look, and killing some makes room for others.
        // So they are stopped (SIGSTOP) first, which makes no room. The first kill of a tree skips this.
        let is_first = self.killed.is_empty();
        if !is_first && members().any(|(identity, ..)| !self.killed.contains(&identity)) {
            self.halt();
        }
        for (identity, name, target) in members() {
            // Once per process is enough; those that are still there haven't died yet.
            if !self.killed.contains(&identity)
                && report.kill(&target, identity.pid, &name) == SignalResult::Yes
            {
                self.killed.insert(identity);
            }
        }
    }

    /// Stops (SIGSTOP) every process, until a scan finds nothing new. A process that was sent the signal starts
    /// no more processes.
    fn halt(&self) {
        let mut halted = BTreeSet::new();
        for _ in 0..HALT_SCANS {
            let before = halted.len();
            for (identity, _, target) in members() {
                if !halted.contains(&identity) && target.signal(Signal::STOP) == SignalResult::Yes {
                    halted.insert(identity);
                }
            }
            if halted.len() == before {
                return;
            }
        }
    }

    fn alive(&self) -> Vec<u32> {
        members()
            .map(|(identity, ..)| identity.pid)
            .take(NAMED_PROCESSES)
            .collect()
    }
}

/// Kills everything below this process, once.
pub(super) fn kill_everything() {
    for (_, _, target) in members() {
        target.signal(Signal::KILL);
    }
}

/// The live processes below this one, each held by a descriptor and checked again: its parent is one that was
/// seen here, or this process, which inherits orphans.
fn members() -> impl Iterator<Item = (Identity, String, Target)> {
    let tree = proc_table::below(std::process::id());
    let parents: BTreeSet<u32> = tree
        .iter()
        .map(|stat| stat.pid)
        .chain([std::process::id()])
        .collect();
    tree.into_iter()
        .filter(crate::proc_table::Stat::is_alive)
        .filter_map(move |stat| {
            let target = Target::hold(stat.identity(), |now| parents.contains(&now.parent))?;
            Some((stat.identity(), stat.name, target))
        })
}
