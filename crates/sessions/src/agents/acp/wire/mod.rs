//! The protocol as bytes: one JSON-RPC message a line, and the messages that we know.
//!
//! We do not use the connection of the published library: its queues have no bounds, and an agent that talks faster than
//! the log takes it in must be held up at its pipe instead. Its types are not used either. Whoever links them changes how
//! JSON objects are ordered in the whole program, since the library asks for that of the JSON crate that all of us share.
//! What we need of the protocol is small, and whatever else an agent says is passed over.

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
