//! The names and numbers of the log: streams, versions, sequence numbers.

use std::{fmt, sync::Arc};

/// The longest name of a stream, kind, status, key or owner, in bytes. Names are indexed, so they stay short.
pub const NAME_LIMIT_BYTES: usize = 256;

/// An invalid name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is not a valid name: use 1 to {NAME_LIMIT_BYTES} bytes without control characters")]
pub struct BadName {
    /// The name, shortened if it was very long.
    pub name: String,
}

pub(crate) fn check_name(name: &str) -> Result<(), BadName> {
    let is_good = (1..=NAME_LIMIT_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_good {
        return Ok(());
    }
    let name = name.chars().take(64).flat_map(char::escape_default).collect();
    Err(BadName { name })
}

/// A text that sorts after every name: the last character, more often than a name can hold it.
pub(crate) fn after_all_names() -> String {
    char::MAX
        .to_string()
        .repeat(NAME_LIMIT_BYTES / char::MAX.len_utf8() + 1)
}

/// The name of a stream, for example `job/job_01J…`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// A stream with this name.
    pub fn new(name: &str) -> Result<Self, BadName> {
        check_name(name)?;
        Ok(Self(Arc::from(name)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the part before the first slash is this prefix.
    pub(crate) fn is_below(&self, prefix: &str) -> bool {
        self.0
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(u64);

        impl $name {
            /// Restores a stored number.
            pub const fn from_u64(number: u64) -> Self {
                Self(number)
            }

            /// The number, to store or send.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

number!(
    /// The commit that a stream is at. Versions only grow, and a log never uses one twice, not even for a stream
    /// that was created again. The default stands for a stream that doesn't exist.
    Version
);
number!(
    /// The position of an event in its stream: 1, 2, 3 and so on, without a gap. The default is before the first
    /// event.
    Sequence
);

/// Distinguishes the streams that had the same name one after the other. Each new one gets a higher number. The
/// default stands for no stream.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Incarnation(u64);

impl Incarnation {
    /// No stream.
    pub(crate) const NONE: Self = Self(0);

    /// The incarnation of the stream that an engine stores under this number.
    pub(crate) const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Later than this one, and not later than any that is created after it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Version {
    /// The version of a stream that doesn't exist.
    pub const NONE: Self = Self(0);
}

impl Sequence {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The next position.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
