//! The locks and atomics of this crate: `std`'s in the product, loom's in the models.
//!
//! A poisoned lock is entered all the same. Every critical section in this crate leaves its data whole before
//! it runs anything that could panic, so the poison would carry no news.

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

/// A place that is written once. In the models its reads and writes are visible to loom, which would otherwise
/// take all their orders for the same.
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
        assert!(is_first, "this is written once");
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

/// Enters a lock, poisoned or not.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, poisoned or not.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
