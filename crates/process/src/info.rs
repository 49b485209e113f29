//! What is shown of owned processes.

use std::time::SystemTime;

use protocol::{ProcessAncestor, ProcessRole, ProcessState};

use crate::entry::Entry;
use crate::proc_table::{Stat, Table};
use crate::spec::Enforcement;
use crate::state::Life;

/// An owned process, for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessInfo {
    /// The name of this very process: none that came before or comes after has it.
    pub id: String,
    /// The pid of the command; `None` until it runs.
    pub pid: Option<u32>,
    /// The pid of its keeper; `None` until there is one.
    pub keeper_pid: Option<u32>,
    /// Whom it belongs to.
    pub owner: String,
    /// Why it runs.
    pub reason: String,
    /// Which start of the owner it is.
    pub generation: u64,
    /// How often the same program was started before for the same owner, in this daemon's life.
    pub restarts: u64,
    /// When it was started.
    pub started_at: SystemTime,
    /// What it is doing.
    pub state: ProcessState,
    /// How many processes it consists of, without the keeper.
    pub processes: usize,
    /// What they have in memory. Pages that they share are counted for each.
    pub rss_bytes: u64,
    /// The program and its arguments, shortened if they are very long.
    pub argv: Vec<String>,
    /// How much of the confinement that was asked for is in force.
    pub confinement: Enforcement,
}

/// What a pid has to do with us.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Why {
    /// It is an owned process, or part of one.
    Owned {
        /// The owned process.
        process: Box<ProcessInfo>,
        /// What the pid is there.
        role: ProcessRole,
        /// The process that was asked for and its parents, up to the command or its keeper.
        line: Vec<ProcessAncestor>,
    },
    /// There is such a process, and it is none of ours.
    NotOurs {
        /// The name of its program.
        name: String,
    },
    /// There is no such process.
    NoSuchProcess,
}

/// To whom a process belongs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Belongs {
    /// To this owner of ours.
    To(String),
    /// To nobody here.
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

/// Says to which of these children a process belongs.
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

/// Says what a pid has to do with these children.
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
