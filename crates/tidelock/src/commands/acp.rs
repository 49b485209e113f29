//! `tidelock acp`: the Agent Client Protocol on standard input and output, for editors.
//!
//! An editor starts this program and talks to it like any agent. A daemon session is behind it: the agent works in a
//! sandbox, and the daemon owns the turn. So nothing is lost if the editor, this program or the daemon is killed.
//!
//! - `message` and `outbox` handle the protocol as bytes; `schema` has the messages that we know, `refusal` the errors.
//! - `serve` reads, and runs each request on its own thread. `setup` creates and finds sessions, `converse` sends a
//!   prompt and waits for its end, `prompt` builds one from what an editor sends, `slash` runs commands that need no
//!   agent.
//! - `open` is a session that an editor has open. One thread watches it (`watch`): everything an editor learns about
//!   a session comes from that thread, in stream order, no matter who sent the prompt. `ear` handles a turn's stream,
//!   `updates` decides what to report, `tools` how a tool call looks, `changes` how a plan looks, `questions` asks
//!   for permissions.
//!
//! Standard output carries the protocol and nothing else. All other messages go to standard error.
//!
//! We don't use the published types of the protocol: linking them changes how JSON objects are ordered in the whole
//! program. The tests check what we send against those types and their schema.

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
