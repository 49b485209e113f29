//! What goes over the wire, without the wire.

mod answer;
mod chunk;
mod events;
mod fault;
mod request;

pub(super) use answer::{Answer, Finish, Piece};
pub(super) use chunk::Chunk;
pub(super) use events::{EventReader, StreamItem};
pub(super) use fault::{Fault, Refusal, Why};
pub(super) use request::{Call, Message, Part, body, size_of};
