//! The changesets of the report: a list, and whoever records takes the last one.

use std::sync::{Arc, Mutex};

use crate::changesets_book::Refusal;

/// Which of the two it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The report: nothing is locked, and nothing is looked at.
    ListAndLast,
    /// The suggested repair: the list has a lock. A changeset is started before it is taken, and a change is recorded after
    /// it was released.
    LockAroundTheList,
}

/// A changeset that anybody can see.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) actor: String,
    pub(crate) closed: bool,
    /// Path and revision of each change.
    pub(crate) changes: Vec<(String, u64)>,
}

/// The changesets of a plan, as one process has them.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    fault: Fault,
    /// Guards what is stored: every process sees it.
    store: Arc<Mutex<Vec<Seen>>>,
    /// Guards the list of this process: the last one of it takes the changes.
    list: Arc<Mutex<Vec<usize>>>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            store: Arc::default(),
            list: Arc::default(),
        }
    }

    /// Another process: the store is the same, the list is its own.
    pub(crate) fn beside(&self) -> Self {
        Self {
            list: Arc::default(),
            ..self.clone()
        }
    }

    /// The first step of a start: it is stored.
    pub(crate) fn publish(&self, actor: &str) -> usize {
        let mut store = self.store.lock().unwrap();
        store.push(Seen {
            actor: actor.to_owned(),
            closed: false,
            changes: Vec::new(),
        });
        store.len() - 1
    }

    /// The second step of a start: it is the last of the list.
    pub(crate) fn enlist(&self, id: usize) {
        self.list.lock().unwrap().push(id);
    }

    /// The first step of a record: the last of the list is found.
    pub(crate) fn find(&self) -> Result<usize, Refusal> {
        let list = self.list.lock().unwrap();
        match self.fault {
            Fault::ListAndLast => Ok(list[list.len().wrapping_sub(1)]),
            Fault::LockAroundTheList => list.last().copied().ok_or(Refusal::NoActiveChangeset),
        }
    }

    /// The second step of a record.
    pub(crate) fn write(&self, id: usize, path: &str, revision: u64) {
        let mut store = self.store.lock().unwrap();
        store[id].changes.push((path.to_owned(), revision));
    }

    pub(crate) fn close(&self, id: usize) {
        self.store.lock().unwrap()[id].closed = true;
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.store.lock().unwrap().clone()
    }

    /// How many this process keeps.
    pub(crate) fn kept(&self) -> usize {
        self.list.lock().unwrap().len()
    }
}
