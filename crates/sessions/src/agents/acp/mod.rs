//! The agent `acp`: any program that speaks the Agent Client Protocol, as a supervised child.
//!
//! - [`AcpAgent`] runs a turn; [`AcpSettings`] say which program to use.
//! - `launch.rs`, `server.rs`, `site.rs`: the program in the sandbox of the session's plan, started and stopped by the
//!   same manager as language servers.
//! - `wire/`: the protocol as bytes. `drive.rs`: one prompt, from its first message to its last. `updates.rs`: turns
//!   the agent's updates into events of the turn. `requests.rs`, `files.rs`, `terminals.rs`, `permission.rs`: the
//!   agent's requests.
//! - `memory.rs`, `history.rs`: how a conversation continues in the next turn.
//!
//! **One process per turn.** A program in a sandbox may change files whenever it runs, and its changes are recorded
//! when it leaves. So it enters before the prompt and is stopped after it: when a turn is over, all of its changes are
//! recorded as that turn's, the plan can be applied, and no part of the agent is running. The next turn starts it
//! again, and it resumes its own session if it can (`session/resume`, `session/load`); otherwise the conversation so
//! far is put before the prompt.
//!
//! **What must not happen here:** reading or writing a file outside the plan, or waiting without a limit for a program
//! that doesn't answer. The only exception is the prompt itself, which the user can stop.

mod agent;
mod drive;
mod files;
mod history;
mod launch;
mod memory;
mod permission;
mod requests;
mod server;
mod settings;
mod site;
mod terminals;
mod updates;
mod wire;

pub use agent::AcpAgent;
pub(crate) use memory::AgentSession;
pub use settings::AcpSettings;
