//! Sessions, as this daemon keeps and shows them.
//!
//! - `start` sets up the service: the agents, their permissions, and the services that they use.
//! - `agents` has the configured, built-in and installed agents; `known_agents` says which ones to look for, and what
//!   is missing for those that are only partly installed.
//! - `shell` runs agents' commands as jobs, and `languages` answers their questions about code.
//! - `queue` changes queued prompts.
//! - `wire` converts sessions and turns for the wire, for the HTTP API and the page.

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
