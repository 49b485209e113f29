//! Bytes to messages and back: frames, the JSON-RPC envelope, and the two ends of a connection.
//!
//! **Who owns the state:** a [`Decoder`] owns the bytes that have arrived and don't form a complete message yet; there
//! is one per connection, in the reader task.
//!
//! **What must not happen here:** memory that is reserved because a peer asked for it, a second copy of a body, a
//! message that is mistaken for another. A peer that breaks the rules gets a typed error, and the connection is closed.

mod connection;
mod encode;
mod frame;
mod header;
mod message;
mod oversized;

pub use connection::{ConnectError, Connection};
pub(crate) use connection::{ReadHalf, WriteHalf};
pub use encode::{EncodeError, encode_notification, encode_request, encode_response};
pub(crate) use encode::{Unnumbered, encode_cancel};
pub use frame::{Decoder, Frame, FrameLimits, Oversized};
pub use header::FrameError;
pub use message::{Message, MessageError, MessageId, ResponseError, error_code};
