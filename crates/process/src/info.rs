//! How owned processes are shown.

use std::time::SystemTime;

use protocol::{ProcessAncestor, ProcessRole, ProcessState};

use crate::entry::Entry;
use crate::proc_table::{Stat, Table};
use crate::spec::Enforcement;
use crate::state::Life;

/// An owned process, for display.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessInfo {
    /// Identifies exactly this process: no earlier or later one has the same id.
    pub id: String,
    /// The pid of the command; `None` until it runs.
    pub pid: Option<u32>,
    /// The pid of its keeper; `None` until there is one.
    pub keeper_pid: Option<u32>,
    /// The owner.
    pub owner: String,
    /// Why it runs.
    pub reason: String,
    /// The generation of the owner's start.
    pub generation: u64,
    /// How many times the same program was started before for the same owner, since this daemon started.
    pub restarts: u64,
    /// When it was started.
    pub started_at: SystemTime,
    /// Its state.
    pub state: ProcessState,
    /// How many processes it consists of, without the keeper.
    pub processes: usize,
    /// Their resident memory. Shared pages are counted for each.
    pub rss_bytes: u64,
    /// The program and its arguments, shortened if they are very long.
    pub argv: Vec<String>,
    /// How much of the requested confinement is in force.
    pub confinement: Enforcement,
}

/// How a pid relates to the owned processes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Why {
    /// It is an owned process, or part of one.
    Owned {
        /// The owned process.
        process: Box<ProcessInfo>,
        /// The role of the pid in it.
        role: ProcessRole,
        /// The requested process and its parents, up to the command or its keeper.
        line: Vec<ProcessAncestor>,
    },
    /// The process exists, but isn't ours.
    NotOurs {
        /// The name of its program.
        name: String,
    },
    /// There is no such process.
    NoSuchProcess,
}

/// The owner of a process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Belongs {
    /// This owner.
    To(String),
    /// Nobody here.
    ToOthers,
    /// There is no such process.
    NoSuchProcess,
}

pub(crate) fn info(entry: &Entry, table: &Table) -> ProcessInfo {
    let keeper = entry.keeper.get();
    let tree = keeper.map_or_else(Vec::new, |keeper| table.below(keeper.pid));
    let started = entry.started.get();
    let facts = &entry.facts;
    ProcessInfo {
        id: facts.tag.clone(),
        pid: started.map(|started| started.command.pid),
        keeper_pid: keeper.map(|keeper| keeper.pid),
        owner: facts.owner.clone(),
        reason: facts.reason.clone(),
        generation: facts.generation,
        restarts: facts.restarts,
        started_at: facts.started_at,
        state: match &*entry.life.read().state {
            Life::Starting { .. } => ProcessState::Starting,
            Life::Running => ProcessState::Running,
            Life::Stopping { .. } | Life::Ended(_) | Life::NeverRan => ProcessState::Stopping,
        },
        processes: tree.len(),
        rss_bytes: tree.iter().copied().map(Stat::resident_bytes).sum(),
        argv: facts.argv.clone(),
        confinement: started.map_or(Enforcement::None, |started| started.confinement),
    }
}

/// The owner of a process, if it belongs to one of these children.
pub(crate) fn owner_of<'entry>(
    upwards: &[Stat],
    mut entries: impl Iterator<Item = &'entry Entry>,
) -> Belongs {
    if upwards.is_empty() {
        return Belongs::NoSuchProcess;
    }
    let is_above = |entry: &&Entry| {
        let keeper = entry.keeper.get();
        keeper.is_some_and(|keeper| upwards.iter().any(|stat| stat.identity() == *keeper))
    };
    match entries.find(is_above) {
        Some(entry) => Belongs::To(entry.facts.owner.clone()),
        None => Belongs::ToOthers,
    }
}

/// How a pid relates to these children.
pub(crate) fn why<'entry>(pid: u32, table: &Table, mut entries: impl Iterator<Item = &'entry Entry>) -> Why {
    let upwards = table.upwards(pid);
    let Some(asked) = upwards.first() else {
        return Why::NoSuchProcess;
    };
    let place_of = |entry: &Entry| {
        let keeper = entry.keeper.get()?;
        upwards.iter().position(|stat| stat.identity() == *keeper)
    };
    let Some((entry, place)) = entries.find_map(|entry| Some((entry, place_of(entry)?))) else {
        return Why::NotOurs {
            name: asked.name.clone(),
        };
    };
    let command = entry.started.get().map(|started| started.command);
    let is_command = |stat: &Stat| Some(stat.identity()) == command;
    let (role, end) = match upwards.iter().position(|stat| is_command(stat)) {
        _ if place == 0 => (ProcessRole::Keeper, 0),
        Some(0) => (ProcessRole::Command, 0),
        Some(command) => (ProcessRole::Descendant, command),
        None => (ProcessRole::Descendant, place),
    };
    let line = upwards[..=end].iter().map(|stat| ProcessAncestor {
        pid: stat.pid,
        name: stat.name.clone(),
    });
    Why::Owned {
        process: Box::new(info(entry, table)),
        role,
        line: line.collect(),
    }
}
