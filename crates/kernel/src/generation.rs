//! The number that every write has to name.

use std::fmt;

/// The version of a state. It only ever grows, and is never reused for the same state.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Generation(u64);

impl Generation {
    pub(crate) const FIRST: Self = Self(1);

    /// Restores a generation from a number, for example one sent by an API client.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The generation as a number, to store or send.
    pub const fn get(self) -> u64 {
        self.0
    }

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
