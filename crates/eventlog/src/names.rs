//! The names and numbers of the log: streams, versions, sequence numbers.

use std::{fmt, sync::Arc};

/// The longest name of a stream, kind, status, key or owner, in bytes. They are indexed, so they stay short.
pub const NAME_LIMIT_BYTES: usize = 256;

/// A name that cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{name}` is not a name: it must have 1 to {NAME_LIMIT_BYTES} bytes and no control characters")]
pub struct BadName {
    /// What was given, shortened if it was very long.
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

/// A text that comes after every name, byte by byte: it begins with as many of the last character as a name can hold.
pub(crate) fn after_all_names() -> String {
    char::MAX
        .to_string()
        .repeat(NAME_LIMIT_BYTES / char::MAX.len_utf8() + 1)
}

/// The name of a stream, for example `job/job_01J…`. Everything that people watch is one.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// A stream of that name.
    pub fn new(name: &str) -> Result<Self, BadName> {
        check_name(name)?;
        Ok(Self(Arc::from(name)))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the part before the first slash is this.
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
            /// Takes a number back that was written down.
            pub const fn from_u64(number: u64) -> Self {
                Self(number)
            }

            /// The number, to be written down.
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
    /// Which commit a stream is at. It only grows, and none is ever used twice in a log, not even for a stream
    /// that was made again. The default stands for a stream that does not exist.
    Version
);
number!(
    /// The place of an event in its stream: 1, 2, 3 and so on, without a gap. The default stands before the
    /// first event.
    Sequence
);

/// Which of the streams of one name it is: whenever one is made, it gets a higher one than any before it. The default
/// stands for no stream.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Life(u64);

impl Life {
    /// No stream.
    pub(crate) const NONE: Self = Self(0);

    /// The life of the stream that an engine has under this number.
    pub(crate) const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// Later than this one, and not later than any that is made after it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Version {
    /// The version of a stream that does not exist.
    pub const NONE: Self = Self(0);
}

impl Sequence {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The place after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
