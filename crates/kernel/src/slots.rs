//! One slot per key, for as long as anyone uses it.
//!
//! Invariants:
//!
//! 1. The entries and their holder counts change only while the lock is held.
//! 2. An entry exists as long as its count is above zero; removing the last holder and removing the entry is one
//!    step. Every [`HeldSlot`] counts, and so does every wait started on one.
//! 3. Each entry starts at a generation above all generations of earlier entries of its key. So a generation seen
//!    before an entry was removed never matches its successor.
//!
//! The lock of a slot is never taken while the lock of the entries is held.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    Deadline, Generation, Scope, Seen, Slot, Stale, WaitError, WaitUntil, block_on,
    sync::{Mutex, lock},
};

/// How many generations an entry may use before those of its successor begin (invariant 3).
const GENERATIONS_PER_ENTRY: u64 = 1 << 32;

/// A registry of slots by key. Clones refer to the same registry.
///
/// ```
/// use kernel::Slots;
///
/// let slots = Slots::new();
/// let held = slots.hold("rust-analyzer", 0);
/// let before = held.read();
/// assert_eq!(slots.list().len(), 1);
///
/// // The entry goes away with its last holder. A new entry never reuses a generation of the old one.
/// drop(held);
/// assert!(slots.find(&"rust-analyzer").is_none());
/// let held = slots.hold("rust-analyzer", 0);
/// assert!(held.transition(before.generation, 1).is_err());
/// ```
pub struct Slots<K: Ord + Clone, S> {
    shared: Arc<Mutex<Guarded<K, S>>>,
}

struct Guarded<K, S> {
    entries: BTreeMap<K, Counted<S>>,
    entries_made: u64,
}

struct Counted<S> {
    slot: Slot<S>,
    holders: usize,
}

impl<K: Ord + Clone, S> Slots<K, S> {
    /// A registry without entries.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Mutex::new(Guarded {
                entries: BTreeMap::new(),
                entries_made: 0,
            })),
        }
    }

    /// Holds the entry of a key. If there is none, it is created in the given state.
    pub fn hold(&self, key: K, initial: S) -> HeldSlot<K, S> {
        let mut guarded = lock(&self.shared);
        let slot = if let Some(counted) = guarded.entries.get_mut(&key) {
            counted.holders += 1;
            counted.slot.clone()
        } else {
            let first = Generation::from_u64(guarded.entries_made * GENERATIONS_PER_ENTRY + 1);
            guarded.entries_made += 1;
            let slot = Slot::starting_at(first, initial);
            guarded.entries.insert(
                key.clone(),
                Counted {
                    slot: slot.clone(),
                    holders: 1,
                },
            );
            slot
        };
        drop(guarded);
        HeldSlot {
            slots: self.clone(),
            key,
            slot,
        }
    }

    /// Holds the entry of a key, if there is one.
    pub fn find(&self, key: &K) -> Option<HeldSlot<K, S>> {
        let mut guarded = lock(&self.shared);
        let counted = guarded.entries.get_mut(key)?;
        counted.holders += 1;
        let slot = counted.slot.clone();
        drop(guarded);
        Some(HeldSlot {
            slots: self.clone(),
            key: key.clone(),
            slot,
        })
    }

    /// All entries with their states, ordered by key. Returns at once.
    pub fn list(&self) -> Vec<(K, Seen<S>)> {
        let slots: Vec<_> = {
            let guarded = lock(&self.shared);
            guarded
                .entries
                .iter()
                .map(|(key, counted)| (key.clone(), counted.slot.clone()))
                .collect()
        };
        slots.into_iter().map(|(key, slot)| (key, slot.read())).collect()
    }

    /// Removes one holder, and the entry with the last one (invariant 2).
    fn release(&self, key: &K) {
        let mut guarded = lock(&self.shared);
        let Some(counted) = guarded.entries.get_mut(key) else {
            return;
        };
        counted.holders -= 1;
        let unused = if counted.holders == 0 {
            guarded.entries.remove(key)
        } else {
            None
        };
        drop(guarded);
        drop(unused);
    }
}

/// A holder of an entry. The entry exists as long as it has holders.
pub struct HeldSlot<K: Ord + Clone, S> {
    slots: Slots<K, S>,
    key: K,
    slot: Slot<S>,
}

impl<K: Ord + Clone, S> HeldSlot<K, S> {
    /// The key of the entry.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// See [`Slot::read`].
    pub fn read(&self) -> Seen<S> {
        self.slot.read()
    }

    /// See [`Slot::transition`].
    pub fn transition(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.slot.transition(seen, next)
    }

    /// See [`Slot::transition_unnoticed`].
    pub fn transition_unnoticed(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.slot.transition_unnoticed(seen, next)
    }

    /// See [`Slot::wait_until`]. The wait also holds the entry. Cancel safety: the same.
    pub fn wait_until<P>(&self, predicate: P, deadline: Deadline, scope: &Scope) -> WaitUntil<S, P, Self>
    where
        P: FnMut(&S) -> bool + Unpin,
    {
        self.slot.wait_keeping(self.clone(), predicate, deadline, scope)
    }

    /// See [`Slot::wait_until_blocking`].
    pub fn wait_until_blocking<P>(
        &self,
        predicate: P,
        deadline: Deadline,
        scope: &Scope,
    ) -> Result<Seen<S>, WaitError<S>>
    where
        P: FnMut(&S) -> bool + Unpin,
        K: Unpin,
        S: fmt::Debug,
    {
        block_on(self.wait_until(predicate, deadline, scope))
    }
}

impl<K: Ord + Clone, S> Clone for HeldSlot<K, S> {
    fn clone(&self) -> Self {
        if let Some(counted) = lock(&self.slots.shared).entries.get_mut(&self.key) {
            counted.holders += 1;
        }
        Self {
            slots: self.slots.clone(),
            key: self.key.clone(),
            slot: self.slot.clone(),
        }
    }
}

impl<K: Ord + Clone, S> Drop for HeldSlot<K, S> {
    fn drop(&mut self) {
        self.slots.release(&self.key);
    }
}

impl<K: Ord + Clone, S> Clone for Slots<K, S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Ord + Clone, S> Default for Slots<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone + fmt::Debug, S: fmt::Debug> fmt::Debug for Slots<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.list()).finish()
    }
}

impl<K: Ord + Clone + fmt::Debug, S: fmt::Debug> fmt::Debug for HeldSlot<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeldSlot")
            .field("key", &self.key)
            .field("slot", &self.slot)
            .finish()
    }
}
