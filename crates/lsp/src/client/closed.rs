//! Why a client is closed.

use std::{io, time::Duration};

use crate::wire::{FrameError, MessageError};

/// Why a connection ended. The first reason counts.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Closed {
    #[error("the server closed the connection")]
    EndOfFile,
    #[error("the server broke the protocol: {0}")]
    Protocol(ProtocolError),
    #[error("the server read nothing for {} s", after.as_secs())]
    Stalled { after: Duration },
    #[error("the server keeps sending requests and has left {unsent} answers unread")]
    Flooded { unsent: usize },
    #[error("the connection failed: {0}")]
    Io(io::ErrorKind),
    #[error("{0}")]
    Asked(String),
}

/// How a server violated the protocol.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Message(#[from] MessageError),
    /// An oversized message that can't be matched to a request.
    #[error("a message of {length} bytes is too long, and matches no request")]
    Oversized { length: u64 },
    #[error("{count} answers in a row have unknown ids")]
    UnknownIds { count: u32 },
    #[error("a message did not arrive within {} s", within.as_secs())]
    MessageTooSlow { within: Duration },
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
