//! The wire format, without any I/O.

mod answer;
mod chunk;
mod fault;
mod request;

pub(super) use answer::{Answer, Finish, Piece};
pub(super) use chunk::Chunk;
pub(super) use fault::{Fault, Refusal, Why};
pub(super) use request::{Call, Message, Part, body, size_of};

/// How much of an unintelligible text to show.
const SHOWN_BYTES: usize = 120;

/// The start of a text, for a message.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES.min(text.len()));
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", text[..end].escape_debug())
}
