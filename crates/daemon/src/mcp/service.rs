//! What all clients share.

use process::Tasks;

use super::clients::Clients;
use crate::configuration::McpSection;

/// The part of a daemon that speaks the protocol.
#[derive(Debug)]
pub(crate) struct Mcp {
    pub(crate) clients: Clients,
    pub(super) section: McpSection,
    /// What is done for clients that do not wait for it.
    pub(super) tasks: Tasks,
}

impl Mcp {
    pub(crate) fn new(section: McpSection, tasks: &Tasks) -> Self {
        Self {
            clients: Clients::default(),
            section,
            tasks: tasks.clone(),
        }
    }
}
