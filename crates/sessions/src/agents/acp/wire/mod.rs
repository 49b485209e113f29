//! The protocol as bytes: one JSON-RPC message per line, and the messages that we know.
//!
//! We don't use the connection of the published library: its queues are unbounded, and an agent that talks faster than
//! the log accepts must block on its pipe instead. We don't use its types either: linking them would change the order
//! of JSON objects in the whole program, because the library enables that feature of the shared JSON crate. We need
//! only a small part of the protocol, and ignore everything else.

mod connection;
mod lines;
mod message;
mod schema;

pub(super) use connection::{CallEnd, Closed, Connection, Incoming, Outbox};
pub(super) use message::{Message, RequestId, RpcError};
pub(super) use schema::{
    Chunk, ConfigOption, CreateTerminal, Initialized, NamedTerminal, PROTOCOL_VERSION, PermissionKind,
    PlanUpdate, PromptEnd, ReadTextFile, RequestPermission, StopReason, ToolContent, ToolStatus, ToolUpdate,
    WriteTextFile, text_of,
};
