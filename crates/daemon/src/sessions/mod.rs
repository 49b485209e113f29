//! Sessions, as this daemon keeps and shows them.
//!
//! - `start` puts the service together: the agents, what they may do, and what others do for them.
//! - `configuration` is what its owner has written down about that; `agents` adds what is built in or installed.
//! - `shell` runs commands of agents as jobs, and `languages` answers their questions about code.
//! - `wire` makes sessions and turns into what goes over the wire, for the interface and for the page alike.

mod agents;
mod configuration;
mod languages;
mod shell;
mod start;
pub(crate) mod wire;

pub(crate) use agents::for_commands;
#[cfg(test)]
pub(crate) use configuration::Configuration;
pub use configuration::ConfigurationError;
pub(crate) use configuration::load;
pub(crate) use start::{Around, start};
