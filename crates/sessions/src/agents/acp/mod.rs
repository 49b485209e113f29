//! The agent `acp`: any program that speaks the Agent Client Protocol, as a supervised child.
//!
//! - [`AcpAgent`] does the work of a turn; [`AcpSettings`] say which program it is.
//! - `launch.rs`, `server.rs`, `site.rs`: the program in the sandbox of the session's plan, started and stopped by the same
//!   manager as language servers.
//! - `wire/`: the protocol as bytes. `drive.rs`: one prompt, from its first message to its last. `updates.rs`: what the agent
//!   tells becomes events of the turn. `requests.rs`, `files.rs`, `terminals.rs`, `permission.rs`: what it asks of us.
//! - `memory.rs`, `history.rs`: how a conversation goes on in the next turn.
//!
//! **One process per turn.** A program in a sandbox may change files whenever it runs, and what it changed is recorded when it
//! has left. So it enters before the prompt and is stopped after it: when a turn is over, all of its changes are recorded
//! as that turn's, the plan can be applied, and nothing of the agent runs. The next turn starts it again, and it takes up its own
//! session if it can (`session/resume`, `session/load`); otherwise the conversation so far is put before the prompt.
//!
//! **What must not happen here:** a file that is read or written past the plan, and a wait without a bound for a program
//! that does not answer, but for the prompt itself, which the user stops.

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
