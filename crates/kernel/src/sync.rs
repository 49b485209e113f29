//! The locks and atomics of this crate: `std`'s in the product, loom's in the models.
//!
//! Poisoning is ignored. Every critical section in this crate leaves its data consistent before it runs anything
//! that could panic.

use std::sync::PoisonError;

#[cfg(tidelock_model)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(tidelock_model))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// A cell that is written once. In the models, loom can see its reads and writes; it can't see those of a
/// `OnceLock`.
#[derive(Debug)]
pub(crate) struct WriteOnce<T> {
    #[cfg(not(tidelock_model))]
    value: std::sync::OnceLock<T>,
    #[cfg(tidelock_model)]
    value: Mutex<Option<T>>,
}

impl<T: Clone> WriteOnce<T> {
    /// Writes the value.
    pub(crate) fn set(&self, value: T) {
        #[cfg(not(tidelock_model))]
        let is_first = self.value.set(value).is_ok();
        #[cfg(tidelock_model)]
        let is_first = lock(&self.value).replace(value).is_none();
        assert!(is_first, "the cell was already written");
    }

    /// The value, if it was written.
    pub(crate) fn get(&self) -> Option<T> {
        #[cfg(not(tidelock_model))]
        return self.value.get().cloned();
        #[cfg(tidelock_model)]
        return lock(&self.value).clone();
    }
}

impl<T> Default for WriteOnce<T> {
    fn default() -> Self {
        Self {
            value: Default::default(),
        }
    }
}

/// Locks a mutex, poisoned or not.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, poisoned or not.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
