//! How a request or notification fails.

use std::{sync::Arc, time::Duration};

use kernel::Cause;

use super::Closed;
use crate::wire::{EncodeError, ResponseError, error_code};

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
    /// Whether the server says that the request may succeed if it is sent again: the document changed, or the server
    /// cancelled it.
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
