//! Which language servers exist, which of them a file gets, and how they are started.
//!
//! Built-in knowledge (`builtin`) is overlaid with the user's configuration and with the repository's, if that is
//! trusted (`config`); programs are looked up (`detect`), roots are found by markers (`roots`), and from all that a
//! file gets one primary server and its supplements (`selection`).
//!
//! **Who owns the state:** there is no state. Everything is computed from files at the time of the question, in plain
//! blocking code. Callers run it on a thread that may block, and cache what they like.
//!
//! **What must not happen here:** starting a server, reading a variable of our own process, and running or naming
//! a program of a workspace that isn't trusted.

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
pub use detect::{
    Detected, FoundProgram, LocalPrograms, MissingProgram, MissingReason, ProgramPlace, Search,
};
pub use environment::Environment;
pub use overview::{Overview, ServerEntry, ServerStatus};
pub use registry::{Fingerprint, Registry, RegistrySettings, WorkspaceError, WorkspaceServers};
pub use roots::{Bounds, FoundBy, Root, RootError, RootRule, RootStep, find as find_root};
pub use selection::{Chosen, MissingServer, Selection};
