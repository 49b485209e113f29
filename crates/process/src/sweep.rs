//! Finds and kills what is left of a child whose keeper can't do it.
//!
//! A process belongs to a child if it is below the keeper or the command, in the keeper's session, or has the
//! child's tag in its environment; everything below it belongs too. Pids are trusted only together with start
//! times. The session is trusted only while the keeper hasn't been reaped, because its number is in use until
//! then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;

use kernel::Deadline;
use rustix::process::Signal;

use crate::ended::{Killed, NAMED_PROCESSES};
use crate::identity::{Identity, SignalResult, Target};
use crate::pidfd::WatchedProcess;
use crate::proc_table::{Stat, Table};

/// The variable that marks a process and everything that it starts.
pub(crate) const TAG_VARIABLE: &str = "TIDELOCK_PROCESS";

/// How many times a tree is scanned for more processes to stop before it is killed as far as it is known. Each
/// scan stops everything that it finds, so a tree that can't grow forever is known after a few; the next kill
/// starts over.
pub(crate) const HALT_SCANS: usize = 32;

/// How a child can be recognized.
#[derive(Clone, Debug)]
pub(crate) struct ProcessTraces {
    pub(crate) keeper: Identity,
    pub(crate) command: Option<Identity>,
    pub(crate) tag: String,
    pub(crate) session: Session,
}

/// Whether the number of the keeper's session can be trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Session {
    /// The keeper hasn't been reaped.
    IsTheKeepers,
    /// The number may have been reused.
    MayBeAnothers,
}

/// What was found and killed.
#[derive(Debug, Default)]
pub(crate) struct SweepResult {
    pub(crate) killed: Killed,
    /// What didn't end before the deadline.
    pub(crate) left: Vec<u32>,
    known: BTreeSet<Identity>,
}

impl SweepResult {
    /// Whether there was anything to kill, even if only a keeper.
    pub(crate) fn found_something(&self) -> bool {
        !self.known.is_empty()
    }
}

/// Kills what is left of each of these children, and then their keepers, and waits until they have ended.
///
/// *Cancel safety*: if the future is dropped, some are killed and some aren't.
pub(crate) async fn sweep(all: &[ProcessTraces], deadline: &Deadline) -> Vec<SweepResult> {
    let mut swept: Vec<SweepResult> = all.iter().map(|_| SweepResult::default()).collect();
    loop {
        let (mut table, mut tags) = look(all);
        // New processes since the last scan appear faster than we look, and killing some makes room for others.
        // So they are stopped (SIGSTOP) first, which makes no room.
        let has_grown = all.iter().zip(&swept).any(|(traces, swept)| {
            let is_new = |member: &&Stat| !swept.known.contains(&member.identity());
            swept.found_something() && traces.members(&table, &tags).iter().any(is_new)
        });
        if has_grown {
            halt(all).await;
            (table, tags) = look(all);
        }
        let mut dying = Vec::new();
        for (traces, swept) in all.iter().zip(&mut swept) {
            let mut members = traces.members(&table, &tags);
            if members.is_empty() {
                members.extend(table.find(traces.keeper).filter(|keeper| keeper.is_alive()));
            }
            swept.left = members
                .iter()
                .map(|member| member.pid)
                .take(NAMED_PROCESSES)
                .collect();
            for member in members {
                dying.extend(swept.kill(member, traces.keeper));
            }
        }
        if dying.is_empty() || deadline.has_passed() {
            return swept;
        }
        for pidfd in dying {
            tokio::select! {
                biased;
                () = ended(pidfd) => {}
                () = deadline.clone().passed() => {}
            }
        }
    }
}

/// Stops (SIGSTOP) what is left of these children, until a scan finds nothing new.
///
/// *Cancel safety*: if the future is dropped, some are stopped and some aren't.
async fn halt(all: &[ProcessTraces]) {
    let mut halted = BTreeSet::new();
    for _ in 0..HALT_SCANS {
        let before = halted.len();
        let (table, tags) = look(all);
        for member in all.iter().flat_map(|traces| traces.members(&table, &tags)) {
            let identity = member.identity();
            let stop = |target: Target| target.signal(Signal::STOP);
            if !halted.contains(&identity)
                && Target::hold(identity, |_| true).map(stop) == Some(SignalResult::Yes)
            {
                halted.insert(identity);
            }
        }
        if halted.len() == before {
            return;
        }
        tokio::task::yield_now().await;
    }
}

impl SweepResult {
    /// Kills a process, and returns a descriptor that becomes readable when it has ended.
    fn kill(&mut self, member: &Stat, keeper: Identity) -> Option<OwnedFd> {
        let target = Target::hold(member.identity(), |_| true)?;
        if target.signal(Signal::KILL) == SignalResult::Gone {
            return None;
        }
        if self.known.insert(member.identity()) && member.identity() != keeper {
            self.killed.add(member.pid, &member.name);
        }
        Some(target.pidfd)
    }
}

async fn ended(pidfd: OwnedFd) {
    // If it can't be awaited, the next scan tells.
    if let Ok(watched) = WatchedProcess::new(pidfd) {
        watched.ended().await;
    }
}

impl ProcessTraces {
    /// What is alive of the child, without its keeper.
    fn members<'table>(&self, table: &'table Table, tags: &BTreeMap<u32, &str>) -> Vec<&'table Stat> {
        let own = std::process::id();
        let (keeper, command) = (
            table.find(self.keeper),
            self.command.and_then(|command| table.find(command)),
        );
        let in_session =
            |stat: &&Stat| self.session == Session::IsTheKeepers && stat.session == self.keeper.pid;
        let is_tagged = |stat: &&Stat| tags.get(&stat.pid) == Some(&self.tag.as_str());
        let roots = table.all().filter(|stat| in_session(stat) || is_tagged(stat));
        let mut members = BTreeMap::new();
        for root in roots.chain(keeper).chain(command) {
            members.insert(root.pid, root);
            members.extend(table.below(root.pid).into_iter().map(|stat| (stat.pid, stat)));
        }
        members.retain(|pid, stat| *pid != own && *pid != self.keeper.pid && stat.is_alive());
        members.into_values().collect()
    }
}

/// All processes, and the tags of these children where they have one.
fn look(all: &[ProcessTraces]) -> (Table, BTreeMap<u32, &str>) {
    let table = Table::read();
    let tags = tags(&table, all);
    (table, tags)
}

/// The tags of these children, where processes have one.
fn tags<'traces>(table: &Table, all: &'traces [ProcessTraces]) -> BTreeMap<u32, &'traces str> {
    let wanted: BTreeSet<&str> = all.iter().map(|traces| traces.tag.as_str()).collect();
    table
        .all()
        .filter_map(|stat| {
            let environment = fs::read(format!("/proc/{}/environ", stat.pid)).ok()?;
            let tag = environment.split(|byte| *byte == 0).find_map(|variable| {
                let value = std::str::from_utf8(variable).ok()?.strip_prefix(TAG_VARIABLE)?;
                value.strip_prefix('=')
            })?;
            wanted.get(tag).map(|tag| (stat.pid, *tag))
        })
        .collect()
}
