//! How the standard input of a command is sent to the daemon: the protocol of `GET /v1/jobs/{id}/input` after
//! both sides have upgraded to [`INPUT_PROTOCOL`].
//!
//! The client sends frames: a kind, the length of the payload in 4 bytes, and the payload. The daemon
//! responds with frames of a kind and a number in 8 bytes. Numbers are big-endian. Kinds from 16 on are
//! reserved for terminals (size, signals). A side that receives an unknown kind closes the connection.

/// The protocol that the connection is upgraded to.
pub const INPUT_PROTOCOL: &str = "tidelock-input";
/// The size limit for the payload of one frame, in bytes.
pub const INPUT_PIECE_BYTES: usize = 64 * 1024;

/// From the client: the next bytes of the input.
pub const INPUT_DATA: u8 = 0;
/// From the client, as its first frame: it is now listening.
pub const INPUT_HELLO: u8 = 2;
/// From the client: the end of the input. A connection that closes without this frame was cut off.
pub const INPUT_END: u8 = 1;

/// From the daemon: the total number of bytes the command has read so far.
pub const INPUT_TAKEN: u8 = 0;
/// From the daemon, as its last frame: the total number of bytes, and the command won't read any more.
pub const INPUT_OVER: u8 = 1;
