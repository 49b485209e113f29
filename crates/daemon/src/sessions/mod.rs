//! Sessions, as this daemon keeps and shows them.
//!
//! - `start` puts the service together: the agents, what they may do, and what others do for them.
//! - `agents` are those that its owner has configured, and those that are built in or installed; `known_agents` says which are
//!   looked for, and what is missing for those that are installed in part.
//! - `shell` runs commands of agents as jobs, and `languages` answers their questions about code.
//! - `queue` changes prompts that wait.
//! - `wire` makes sessions and turns into what goes over the wire, for the interface and for the page alike.

mod agents;
mod known_agents;
mod languages;
mod queue;
mod shell;
mod start;
pub(crate) mod wire;

pub(crate) use agents::{
    BASE_URL, MODEL_NAME, USUAL_BASE_URL, USUAL_KEY, Variables, check_default_agent, for_commands,
    model_settings,
};
pub(crate) use queue::edit_queued;
pub(crate) use start::{Around, start};
