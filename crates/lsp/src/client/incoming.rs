//! What a server says by itself.

use serde_json::value::RawValue;

use crate::wire::ResponseError;

/// Receives what a server sends unasked, in order.
///
/// The task that reads makes the calls: they must not block, and nothing else is read while one runs.
pub trait Incoming: Send + Sync + 'static {
    fn notification(&self, method: &str, params: Option<&RawValue>);

    /// A request of the server. Answer unknown methods with
    /// [`ResponseError::method_not_found`](crate::ResponseError::method_not_found).
    fn request(&self, method: &str, params: Option<&RawValue>) -> Result<serde_json::Value, ResponseError>;
}
