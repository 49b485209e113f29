//! The number that every write names.

use std::fmt;

/// Which life of a state somebody has seen. It only ever grows, and is never reused for the same state.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Generation(u64);

impl Generation {
    /// The first generation of a state that stands alone.
    pub(crate) const FIRST: Self = Self(1);

    /// Takes back a generation that was written down as a number, by an API client for example.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be written down.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The generation after this one.
    pub(crate) fn next(self) -> Self {
        assert!(self.0 < u64::MAX, "a generation never wraps around");
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
