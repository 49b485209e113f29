//! Sessions: streams of turns to many readers, many turns at once, readers that wait, long histories, and crashes.
//!
//! Everything runs through the sockets of the shipped daemon; the agent is the rehearsal. The peer is what people
//! write by hand: FastAPI and sse-starlette with a ring in memory, installed by `pip` below the target directory. The
//! figures of the program that the report is about were measured on a similar machine, and are fixed in the tables.

pub(crate) mod at_once;
pub(crate) mod crash;
pub(crate) mod fan_out;
pub(crate) mod history;
pub(crate) mod idle;
mod peer;
pub(crate) mod reconnect;
mod session_daemon;
mod sse;

pub(crate) use sse::{Door, Stream, until_there};
