//! The position of a reader in a stream, in a form that it can store and send back.

use std::{fmt, num::ParseIntError, str::FromStr};

use crate::{commit::Event, names::Sequence};

/// The last event that a reader has seen, and when it was written.
///
/// The sequence number alone isn't enough: a database server that crashes may lose events that readers have
/// already seen, and later events then get their numbers. Those have a later time, which tells them apart. A
/// bookmark without a time is trusted as it is.
///
/// ```
/// use eventlog::{Bookmark, Sequence};
///
/// let bookmark: Bookmark = "12-1700000000000".parse()?;
/// assert_eq!(bookmark.sequence, Sequence::from_u64(12));
/// assert_eq!(bookmark.to_string(), "12-1700000000000");
/// assert_eq!("12".parse::<Bookmark>()?, Sequence::from_u64(12).into());
/// # Ok::<(), std::num::ParseIntError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bookmark {
    /// The sequence number of the event.
    pub sequence: Sequence,
    /// When it was written, in milliseconds since 1970; `None` if the reader doesn't know.
    pub at_ms: Option<i64>,
}

impl Bookmark {
    /// Whether this event differs from the one that the reader saw at this position.
    #[must_use]
    pub fn is_replaced_by(&self, event: &Event) -> bool {
        event.sequence == self.sequence && self.at_ms.is_some_and(|at_ms| at_ms != event.at_ms)
    }
}

impl From<Sequence> for Bookmark {
    fn from(sequence: Sequence) -> Self {
        Self {
            sequence,
            at_ms: None,
        }
    }
}

impl From<&Event> for Bookmark {
    fn from(event: &Event) -> Self {
        Self {
            sequence: event.sequence,
            at_ms: Some(event.at_ms),
        }
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.sequence)?;
        match self.at_ms {
            Some(at_ms) => write!(formatter, "-{at_ms}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Bookmark {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (sequence, at_ms) = match text.split_once('-') {
            Some((sequence, at_ms)) => (sequence, Some(at_ms.parse()?)),
            None => (text, None),
        };
        Ok(Self {
            sequence: Sequence::from_u64(sequence.parse()?),
            at_ms,
        })
    }
}
