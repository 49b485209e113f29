//! A value per pool of workers.

use std::ops::{Index, IndexMut};

use crate::job::Pool;

impl Pool {
    /// All pools. Jobs that a user watches come first.
    pub(crate) const ALL: [Self; 2] = [Self::Foreground, Self::Workers];
}

/// A value per pool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ByPool<T> {
    workers: T,
    foreground: T,
}

impl<T> Index<Pool> for ByPool<T> {
    type Output = T;

    fn index(&self, pool: Pool) -> &T {
        match pool {
            Pool::Workers => &self.workers,
            Pool::Foreground => &self.foreground,
        }
    }
}

impl<T> IndexMut<Pool> for ByPool<T> {
    fn index_mut(&mut self, pool: Pool) -> &mut T {
        match pool {
            Pool::Workers => &mut self.workers,
            Pool::Foreground => &mut self.foreground,
        }
    }
}
