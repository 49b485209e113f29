//! All servers at a glance, for people who want to know which are installed.

use std::net::SocketAddr;
use std::sync::Arc;

use super::config::ConfigNote;
use super::definition::{Enablement, Origin, Role, ServerDefinition, Transport};
use super::detect::{Detected, FoundProgram, MissingProgram};
use super::registry::WorkspaceServers;

/// Every known server, in order of preference, and what people should see.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    pub servers: Vec<ServerEntry>,
    pub notes: Vec<ConfigNote>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    pub name: Arc<str>,
    pub role: Role,
    pub languages: Vec<Arc<str>>,
    pub origin: Origin,
    pub status: ServerStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    Found(FoundProgram),
    /// It isn't installed.
    Missing(MissingProgram),
    /// Somebody else runs it at this address; whether it is up only shows when it is used.
    Remote(SocketAddr),
    Disabled,
}

impl WorkspaceServers {
    /// Searches for every server, as if its root were the top of the workspace. Blocks.
    pub fn overview(&self) -> Overview {
        let entries = self.definitions.iter().map(|definition| ServerEntry {
            name: Arc::clone(&definition.name),
            role: definition.role,
            languages: definition
                .languages
                .iter()
                .map(|language| Arc::clone(&language.id))
                .collect(),
            origin: definition.origin.clone(),
            status: self.status(definition),
        });
        Overview {
            servers: entries.collect(),
            notes: self.notes.clone(),
        }
    }

    fn status(&self, definition: &ServerDefinition) -> ServerStatus {
        match (definition.enablement, definition.transport) {
            (Enablement::Disabled, _) => ServerStatus::Disabled,
            (Enablement::Enabled, Transport::Tcp(address)) => ServerStatus::Remote(address),
            (Enablement::Enabled, Transport::Stdio | Transport::TcpSpawned(_)) => {
                match self.detect(definition, &self.workspace) {
                    Detected::Found(found) => ServerStatus::Found(found),
                    Detected::Missing(missing) => ServerStatus::Missing(missing),
                }
            }
        }
    }
}
