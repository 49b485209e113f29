//! `tidelock acp`: the Agent Client Protocol on standard input and output, for editors.
//!
//! An editor starts this program and speaks with it as with any agent. Behind it stands a session of the daemon: whoever
//! answers works in a sandbox, and the turn belongs to the daemon. So nothing is lost if the editor, this program or the
//! daemon is killed.
//!
//! - `message` and `outbox` are the protocol as bytes; `schema` has the messages that we know, `refusal` the errors.
//! - `serve` reads, and has each request done by a thread of its own. `setup` makes and finds sessions, `converse` sends a
//!   prompt and waits for its end, `prompt` makes one of what an editor sends, `slash` does what needs no agent.
//! - `open` is a session that an editor has open. One thread watches it (`watch`): everything that an editor is told of a
//!   session comes from there and in the order of the stream, whoever sent the prompt. `ear` hears a turn, `updates` decides
//!   what is told of it, `tools` how a call of a tool looks, `changes` how a plan does, `questions` asks for permissions.
//!
//! Standard output has the protocol and nothing else. What there is to say besides goes to standard error.
//!
//! The published types of the protocol are not used: whoever links them changes how JSON objects are ordered in the whole
//! program. That what is sent is right is checked by the tests, against those types and their schema.

mod changes;
mod converse;
mod ear;
mod message;
mod open;
mod outbox;
mod prompt;
mod questions;
mod refusal;
mod schema;
mod serve;
mod setup;
mod slash;
mod tools;
mod updates;
mod watch;

pub(super) use serve::run;
