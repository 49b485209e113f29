//! What is left of a child whose keeper cannot see to it: found by its traces, and killed.
//!
//! A process belongs to a child if it is below the keeper or the command, if it is in the keeper's session, or if the
//! child's tag stands in its environment; and so does everything below it. Pids are believed only together with start
//! times. The session is believed only while the keeper has not been reaped, since its number is in use until then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;

use kernel::Deadline;
use rustix::process::Signal;

use crate::ended::{Killed, NAMED_PROCESSES};
use crate::identity::{Identity, Sent, Target};
use crate::pidfd::Watched;
use crate::proc_table::{Stat, Table};

/// The variable that marks a process and everything that it starts.
pub(crate) const TAG_VARIABLE: &str = "TIDELOCK_PROCESS";

/// How often a tree is looked at for more to be halted before it is killed as far as it is known. Each look halts all
/// that it finds, so a tree that cannot grow for ever is known after a few; the next kill begins anew.
pub(crate) const LOOKS_TO_HALT: usize = 32;

/// How a child can be known.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    pub(crate) keeper: Identity,
    pub(crate) command: Option<Identity>,
    pub(crate) tag: String,
    pub(crate) session: Session,
}

/// Whether the number of the keeper's session can be believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Session {
    /// The keeper has not been reaped.
    IsTheKeepers,
    /// It may be in use again.
    MayBeAnothers,
}

/// What was found and killed.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) killed: Killed,
    /// What did not end before the deadline.
    pub(crate) left: Vec<u32>,
    known: BTreeSet<Identity>,
}

impl Swept {
    /// Whether there was anything to kill, be it a keeper alone.
    pub(crate) fn found_something(&self) -> bool {
        !self.known.is_empty()
    }
}

/// Kills what is left of each of these children, and then their keepers, and waits until they have ended.
///
/// *Cancel safety*: dropped half-way, some are killed and some are not.
pub(crate) async fn sweep(all: &[Traces], deadline: &Deadline) -> Vec<Swept> {
    let mut swept: Vec<Swept> = all.iter().map(|_| Swept::default()).collect();
    loop {
        let (mut table, mut tags) = look(all);
        // What has come since the last time comes faster than we look, and killing some makes room for others. So they
        // are halted first, which makes no room.
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

/// Halts what is left of these children, until a look finds nobody new.
///
/// *Cancel safety*: dropped half-way, some are halted and some are not.
async fn halt(all: &[Traces]) {
    let mut halted = BTreeSet::new();
    for _ in 0..LOOKS_TO_HALT {
        let before = halted.len();
        let (table, tags) = look(all);
        for member in all.iter().flat_map(|traces| traces.members(&table, &tags)) {
            let identity = member.identity();
            let stop = |target: Target| target.signal(Signal::STOP);
            if !halted.contains(&identity) && Target::hold(identity, |_| true).map(stop) == Some(Sent::Yes) {
                halted.insert(identity);
            }
        }
        if halted.len() == before {
            return;
        }
        tokio::task::yield_now().await;
    }
}

impl Swept {
    /// Kills one, and hands out a descriptor that becomes readable when it has ended.
    fn kill(&mut self, member: &Stat, keeper: Identity) -> Option<OwnedFd> {
        let target = Target::hold(member.identity(), |_| true)?;
        if target.signal(Signal::KILL) == Sent::Gone {
            return None;
        }
        if self.known.insert(member.identity()) && member.identity() != keeper {
            self.killed.add(member.pid, &member.name);
        }
        Some(target.pidfd)
    }
}

async fn ended(pidfd: OwnedFd) {
    // If it cannot be waited for, the next look at the table tells.
    if let Ok(watched) = Watched::new(pidfd) {
        watched.ended().await;
    }
}

impl Traces {
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
fn look(all: &[Traces]) -> (Table, BTreeMap<u32, &str>) {
    let table = Table::read();
    let tags = tags(&table, all);
    (table, tags)
}

/// The tags of these children, where processes have one.
fn tags<'traces>(table: &Table, all: &'traces [Traces]) -> BTreeMap<u32, &'traces str> {
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
