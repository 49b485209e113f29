//! The node behind a token: its word, its waiters, and its position in the tree. The numbered invariants are in
//! the parent module.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Weak, atomic},
    task::{Wake, Waker},
};

use super::{Cause, ResetRefused};
use crate::{
    clock::Alarm,
    deadline::Deadline,
    sync::{AtomicU64, Mutex, Ordering, WriteOnce, lock},
    waiters::{Ticket, Waiters},
};

#[derive(Debug)]
pub(super) struct Node {
    /// Identifies this node among its siblings.
    id: u64,
    /// The mirror of the word, for readers without the lock.
    word: AtomicU64,
    parents: Vec<Arc<Node>>,
    guarded: Mutex<Guarded>,
}

#[derive(Debug, Default)]
struct Guarded {
    word: u64,
    run: Arc<Run>,
    waiters: Waiters,
    children: BTreeMap<u64, Weak<Node>>,
    /// The alarm for the deadline of the current run.
    alarm: Option<Alarm>,
}

/// What the scopes of one run share, besides the word.
#[derive(Debug, Default)]
pub(super) struct Run {
    cause: WriteOnce<Arc<Cause>>,
}

impl Run {
    /// The cause. By invariant 4 it is set once the word differs.
    pub(super) fn cause(&self) -> Option<Arc<Cause>> {
        self.cause.get()
    }
}

pub(super) const fn is_odd(word: u64) -> bool {
    word & 1 == 1
}

/// The even word of the run that this word belongs to, live or cancelled.
const fn live_word(word: u64) -> u64 {
    word & !1
}

impl Node {
    /// A live node, or a cancelled one if a parent is cancelled (invariant 6).
    pub(super) fn with_parents(parents: &[&Arc<Self>]) -> Arc<Self> {
        static NEXT_ID: atomic::AtomicU64 = atomic::AtomicU64::new(0);
        let node = Arc::new(Self {
            id: NEXT_ID.fetch_add(1, atomic::Ordering::Relaxed),
            word: AtomicU64::new(0),
            parents: parents.iter().map(|parent| Arc::clone(parent)).collect(),
            guarded: Mutex::default(),
        });
        for parent in parents {
            if let Some(cause) = parent.adopt(&node) {
                cancel_tree(&node, None, &cause);
            }
        }
        node
    }

    /// Registers a child. If this node is cancelled, returns the cause with which to cancel the child instead.
    fn adopt(&self, child: &Arc<Self>) -> Option<Arc<Cause>> {
        let mut guarded = lock(&self.guarded);
        if is_odd(guarded.word) {
            return guarded.run.cause();
        }
        guarded.children.insert(child.id, Arc::downgrade(child));
        None
    }

    pub(super) fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        is_odd(self.word())
    }

    /// The current run, with its even word.
    pub(super) fn current(&self) -> (u64, Arc<Run>) {
        let guarded = lock(&self.guarded);
        (live_word(guarded.word), Arc::clone(&guarded.run))
    }

    /// Increments the word and its mirror (invariants 1 and 2).
    fn step(&self, guarded: &mut Guarded) {
        guarded.word += 1;
        self.word.store(guarded.word, Ordering::Release);
    }

    pub(super) fn reset(&self, seen: Option<u64>) -> Result<(), ResetRefused> {
        let mut guarded = lock(&self.guarded);
        if seen.is_some_and(|seen| guarded.word != seen + 1) {
            return Err(ResetRefused::Moved);
        }
        if !is_odd(guarded.word) {
            return Ok(());
        }
        // Invariant 7: this node's lock is held while the parents' words are read.
        if self.parents.iter().any(|parent| parent.is_cancelled()) {
            return Err(ResetRefused::ParentCancelled);
        }
        guarded.run = Arc::default();
        self.step(&mut guarded);
        Ok(())
    }

    /// Registers a waiter if the run with that word is still live (invariant 5). Returns whether it did.
    pub(super) fn enter(&self, live_word: u64, ticket: &mut Option<Ticket>, waker: Waker) -> bool {
        let mut guarded = lock(&self.guarded);
        if guarded.word != live_word {
            return false;
        }
        let replaced = guarded.waiters.enter(ticket, waker);
        drop(guarded);
        drop(replaced);
        true
    }

    pub(super) fn leave(&self, ticket: Ticket) {
        let waker = lock(&self.guarded).waiters.leave(ticket);
        drop(waker);
    }

    /// Cancels the current run when the deadline passes, unless it has ended by then.
    pub(super) fn cancel_at(self: &Arc<Self>, deadline: &Deadline) {
        let (live_word, _) = self.current();
        let expiry = Expiry {
            node: Arc::downgrade(self),
            live_word,
        };
        let alarm = deadline.alarm(Waker::from(Arc::new(expiry)));
        let mut guarded = lock(&self.guarded);
        // If the run has already ended, perhaps through this alarm, the alarm is no longer needed.
        let unused = if guarded.word == live_word {
            mem::replace(&mut guarded.alarm, alarm)
        } else {
            alarm
        };
        drop(guarded);
        drop(unused);
    }

    pub(super) fn tracked(&self) -> (usize, usize) {
        let guarded = lock(&self.guarded);
        (guarded.children.len(), guarded.waiters.len())
    }

    /// Cancels this node alone. Returns the waiters to wake and the children to visit.
    fn cancel_here(&self, seen: Option<u64>, cause: &Arc<Cause>) -> Option<Visit> {
        let mut guarded = lock(&self.guarded);
        if seen.is_some_and(|seen| seen != guarded.word) {
            return None;
        }
        let mut visit = Visit {
            was_first: false,
            wakers: Vec::new(),
            children: Vec::new(),
            alarm: None,
        };
        if !is_odd(guarded.word) {
            visit.was_first = true;
            visit.alarm = guarded.alarm.take();
            guarded.run.cause.set(Arc::clone(cause));
            self.step(&mut guarded);
            visit.wakers.extend(guarded.waiters.take_all());
        }
        // Children get this node's cause, which may come from an earlier caller.
        if let Some(cause) = guarded.run.cause() {
            let children = guarded.children.values().filter_map(Weak::upgrade);
            visit
                .children
                .extend(children.map(|child| (child, Arc::clone(&cause))));
        }
        Some(visit)
    }
}

/// What is left to do outside the lock after a node was cancelled.
struct Visit {
    was_first: bool,
    wakers: Vec<Waker>,
    children: Vec<(Arc<Node>, Arc<Cause>)>,
    alarm: Option<Alarm>,
}

pub(super) fn cancel(node: &Arc<Node>, seen: Option<u64>, cause: Cause) -> bool {
    cancel_tree(node, seen, &Arc::new(cause))
}

/// Cancels a node and its descendants, then wakes all waiters (invariant 8). It loops instead of recursing so
/// that a deep tree can't overflow the stack.
fn cancel_tree(node: &Arc<Node>, seen: Option<u64>, cause: &Arc<Cause>) -> bool {
    let Some(first) = node.cancel_here(seen, cause) else {
        return false;
    };
    let was_first = first.was_first;
    drop(first.alarm);
    let (mut wakers, mut pending) = (first.wakers, first.children);
    while let Some((child, cause)) = pending.pop() {
        if let Some(visit) = child.cancel_here(None, &cause) {
            wakers.extend(visit.wakers);
            pending.extend(visit.children);
            drop(visit.alarm);
        }
    }
    wakers.into_iter().for_each(Waker::wake);
    was_first
}

impl Drop for Node {
    /// Unregisters the node from its parents. A parent that only this node kept alive is dropped in the same
    /// loop, so that a long chain can't overflow the stack.
    fn drop(&mut self) {
        let mut leaving = vec![(self.id, mem::take(&mut self.parents))];
        while let Some((id, parents)) = leaving.pop() {
            for parent in parents {
                let entry = lock(&parent.guarded).children.remove(&id);
                drop(entry);
                if let Some(mut parent) = Arc::into_inner(parent) {
                    leaving.push((parent.id, mem::take(&mut parent.parents)));
                }
            }
        }
    }
}

/// Cancels one run when its deadline passes.
struct Expiry {
    node: Weak<Node>,
    live_word: u64,
}

impl Wake for Expiry {
    fn wake(self: Arc<Self>) {
        if let Some(node) = self.node.upgrade() {
            cancel(&node, Some(self.live_word), Cause::deadline());
        }
    }
}
