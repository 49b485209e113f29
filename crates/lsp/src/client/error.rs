//! How a request or notification fails, and why a client is closed.

use std::{io, sync::Arc, time::Duration};

use kernel::Cause;

use crate::wire::{EncodeError, FrameError, MessageError, ResponseError, error_code};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// There was no answer before the deadline. The request was cancelled in the server.
    #[error("no answer to {method} within {} ms", waited.as_millis())]
    Timeout { method: Arc<str>, waited: Duration },
    /// The caller's scope was cancelled, and so was the request in the server.
    #[error("the request was cancelled by {cause}")]
    Cancelled { cause: Arc<Cause> },
    #[error("{reason}")]
    Closed { reason: Arc<Closed> },
    /// The answer was too long. The connection stays open.
    #[error("the answer has {bytes} bytes, which is too long")]
    Oversized { bytes: u64 },
    #[error("{limit} calls are waiting for this server")]
    TooManyPending { limit: usize },
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl RequestError {
    /// Whether the server indicates that the request may succeed if it is sent again: the document changed, or the
    /// server cancelled it.
    pub fn may_be_sent_again(&self) -> bool {
        matches!(
            self,
            Self::Response(ResponseError {
                code: error_code::CONTENT_MODIFIED | error_code::SERVER_CANCELLED,
                ..
            })
        )
    }
}

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
