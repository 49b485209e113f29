//! All servers at a glance, for people who ask what is here and what is not.

use std::net::SocketAddr;
use std::sync::Arc;

use super::config::ConfigNote;
use super::definition::{Enablement, Origin, Role, ServerDefinition, Transport};
use super::detect::{Detected, FoundProgram, MissingProgram};
use super::registry::WorkspaceServers;

/// Every known server, in order of preference, and what people should see.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// In order of preference.
    pub servers: Vec<ServerEntry>,
    /// See [`ConfigNote`].
    pub notes: Vec<ConfigNote>,
}

/// One known server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its name.
    pub name: Arc<str>,
    /// See [`Role`].
    pub role: Role,
    /// Ids of the languages that it serves.
    pub languages: Vec<Arc<str>>,
    /// The last configuration that touched it.
    pub origin: Origin,
    /// Whether it can be used.
    pub status: ServerStatus,
}

/// Whether a server can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    /// It is here.
    Found(FoundProgram),
    /// It is not.
    Missing(MissingProgram),
    /// Somebody else keeps it running there; whether that is so is seen when it is used.
    Remote(SocketAddr),
    /// A configuration switched it off.
    Disabled,
}

impl WorkspaceServers {
    /// Looks for every server, as if its root were the top of the workspace. Blocks.
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
