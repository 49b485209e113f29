//! Why a client is closed.

use std::{io, time::Duration};

use crate::wire::{FrameError, MessageError};

/// The end of a connection. The first reason counts.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Closed {
    /// The server closed its output.
    #[error("the server closed the connection")]
    EndOfFile,
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(ProtocolError),
    /// The server does not read any more.
    #[error("the server read nothing for {} s", after.as_secs())]
    Stalled {
        /// How long it was waited for.
        after: Duration,
    },
    /// The server asks faster than it takes answers.
    #[error("the server left {unsent} answers unread and went on asking")]
    Flooded {
        /// How many answers were waiting.
        unsent: usize,
    },
    /// The system refused to read or write.
    #[error("the connection failed: {0}")]
    Io(io::ErrorKind),
    /// Somebody here wanted it.
    #[error("{0}")]
    Asked(String),
}

/// What a server did that the protocol does not allow.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// Wrong framing.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A body that is no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A message over the limit that answers no request, as far as can be told.
    #[error("a message of {length} bytes is too long, and it cannot be told what it is")]
    Oversized {
        /// Its length.
        length: u64,
    },
    /// Answers to requests that nobody made.
    #[error("{count} answers in a row were to requests that nobody made")]
    UnknownIds {
        /// How many.
        count: u32,
    },
    /// A message that began and did not come to its end.
    #[error("a message did not arrive within {} s", within.as_secs())]
    MessageTooSlow {
        /// What is allowed.
        within: Duration,
    },
}

impl From<FrameError> for Closed {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.into())
    }
}

impl From<MessageError> for Closed {
    fn from(error: MessageError) -> Self {
        Self::Protocol(error.into())
    }
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind())
    }
}
