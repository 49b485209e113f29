//! How the standard input of a command travels to the daemon: the words of `GET /v1/jobs/{id}/input` after both sides have
//! agreed on [`INPUT_PROTOCOL`].
//!
//! The client sends frames: a kind, the length of what follows as 4 bytes, and that. The daemon answers with frames of a
//! kind and a number of 8 bytes. Numbers have their highest byte first. Kinds from 16 on are for terminals (size, signals);
//! who gets a kind that it does not know ends the connection.

/// What the connection is upgraded to.
pub const INPUT_PROTOCOL: &str = "tidelock-input";
/// The longest piece in one frame.
pub const INPUT_PIECE_BYTES: usize = 64 * 1024;

/// From the client: the next bytes.
pub const INPUT_DATA: u8 = 0;
/// From the client, first of all: it listens from now on.
pub const INPUT_HELLO: u8 = 2;
/// From the client: there are no more. A connection that ends without this was cut off.
pub const INPUT_END: u8 = 1;

/// From the daemon: the command has read so many bytes, all in all.
pub const INPUT_TAKEN: u8 = 0;
/// From the daemon: that is all it will ever read. It is the last frame.
pub const INPUT_OVER: u8 = 1;
