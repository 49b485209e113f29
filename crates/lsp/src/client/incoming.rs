//! What a server says by itself.

use serde_json::value::RawValue;

use crate::wire::ResponseError;

/// Takes what a server sends without being asked, in the order in which it came.
///
/// The calls are made by the task that reads: they must not block, and while one runs nothing else is read.
pub trait Incoming: Send + Sync + 'static {
    fn notification(&self, method: &str, params: Option<&RawValue>);

    /// The server asks something. Unknown methods are answered with
    /// [`ResponseError::method_not_found`](crate::ResponseError::method_not_found).
    fn request(&self, method: &str, params: Option<&RawValue>) -> Result<serde_json::Value, ResponseError>;
}
