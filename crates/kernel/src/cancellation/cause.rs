//! Who cancelled a run, and why.

use std::{borrow::Cow, fmt};

/// The reason for a cancellation, visible to everything that it stops.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause {
    /// Who asked for it: a user, a signal, a deadline.
    pub who: Cow<'static, str>,
    /// Why, in a few words.
    pub why: Cow<'static, str>,
}

impl Cause {
    /// A cause.
    pub fn new(who: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            who: who.into(),
            why: why.into(),
        }
    }

    /// The cause of a run whose deadline has passed.
    pub fn deadline() -> Self {
        Self::new("deadline", "the time for this run is over")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.who, self.why)
    }
}
