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
    /// There was no answer before the deadline. The server has been told to give up.
    #[error("no answer to {method} within {} ms", waited.as_millis())]
    Timeout { method: Arc<str>, waited: Duration },
    /// The caller's scope was cancelled. The server has been told to give up.
    #[error("the request was cancelled by {cause}")]
    Cancelled { cause: Arc<Cause> },
    #[error("{reason}")]
    Closed { reason: Arc<Closed> },
    /// The answer was too long to be kept. The connection goes on.
    #[error("the answer has {bytes} bytes, which is more than is kept")]
    Oversized { bytes: u64 },
    #[error("{limit} calls are waiting for this server")]
    TooManyPending { limit: usize },
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl RequestError {
    /// Whether the server said that the same request may succeed if it is sent again: the document changed, or the
    /// server gave up by itself.
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
