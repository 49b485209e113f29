//! What goes over the wire, without the wire.

mod answer;
mod chunk;
mod fault;
mod request;

pub(super) use answer::{Answer, Finish, Piece};
pub(super) use chunk::Chunk;
pub(super) use fault::{Fault, Refusal, Why};
pub(super) use request::{Call, Message, Part, body, size_of};

/// How much of a text that makes no sense is shown.
const SHOWN_BYTES: usize = 120;

/// The beginning of a text, for a message.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES.min(text.len()));
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", text[..end].escape_debug())
}
