//! Which language servers there are, which of them a file gets, and how they are started.
//!
//! Built-in knowledge (`builtin`) is overlaid with the user's configuration and with the repository's, if that is
//! trusted (`config`); programs are looked for (`detect`), roots are found by markers (`roots`), and out of all that a
//! file gets one primary server and its supplements (`selection`).
//!
//! **Who owns the state:** nobody; there is none. Everything is worked out from files at the moment of the question,
//! in plain blocking code. Callers run it on a thread for that, and keep what they like.
//!
//! **What must not happen here:** no server is started, no variable of our own process is read, and no program of a
//! workspace that is not trusted is run or named.

mod adjust;
mod builtin;
mod cargo_manifest;
mod config;
mod definition;
mod detect;
mod environment;
mod languages;
mod overview;
mod registry;
mod roots;
mod selection;
mod version_probe;

pub use config::{ConfigError, ConfigHash, ConfigNote, Trust};
pub use definition::{
    Applies, CommandLine, CommandSpec, DATA_PLACEHOLDER, Enablement, LanguageFiles, LaunchSpec, Origin,
    PORT_PLACEHOLDER, Readiness, Role, ServerDefinition, ServerLimits, Transport,
};
pub use detect::{Detected, FoundProgram, LocalPrograms, MissingProgram, MissingReason, Place, Search};
pub use environment::Environment;
pub use overview::{Overview, ServerEntry, ServerStatus};
pub use registry::{Fingerprint, Registry, RegistrySettings, WorkspaceError, WorkspaceServers};
pub use roots::{Bounds, FoundBy, Root, RootError, RootRule, RootStep, find as find_root};
pub use selection::{Chosen, MissingServer, Selection};
