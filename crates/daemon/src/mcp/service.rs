//! The state that all clients share.

use process::Tasks;

use super::clients::Clients;
use crate::configuration::{ApplyWord, McpSection};

/// The part of a daemon that speaks the protocol.
#[derive(Debug)]
pub(crate) struct Mcp {
    pub(crate) clients: Clients,
    pub(super) section: McpSection,
    /// Runs work for clients that don't wait for it.
    pub(super) tasks: Tasks,
}

impl Mcp {
    /// Whether clients may change a workspace.
    pub(crate) fn apply(&self) -> ApplyWord {
        self.section.apply()
    }

    pub(crate) fn new(section: McpSection, tasks: &Tasks) -> Self {
        Self {
            clients: Clients::default(),
            section,
            tasks: tasks.clone(),
        }
    }
}
