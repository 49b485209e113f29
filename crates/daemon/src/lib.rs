//! The daemon: HTTP on a Unix socket and a loopback address, the page, and everything that protects them.
//!
//! [`Daemon::start`] takes ownership of the [`Home`], listens, and answers requests; [`Daemon::wait`] runs until
//! something stops the daemon, then drains. All requests share one `App`, and its mutable parts do their own
//! synchronization: the phase is a `kernel::Slot`, the stop a `kernel::CancellationToken`, the breakers a
//! `kernel::CircuitBreaker`, and a single task owns the breakers that are held by hand. What outlives a daemon is in
//! its log, which it opens as soon as it owns the home; see `durable`.
//!
//! **Boundary**: this crate knows HTTP, JSON shapes and HTML. It installs no log subscriber and reads no
//! environment; the binary does. Secrets (the token, codes, cookies) never reach the log.
//!
//! **Invariant**: every task belongs to `process::Tasks`, and an idle daemon doesn't wake up, except for the upkeep of
//! its log every few hours.

#![expect(
    missing_docs,
    reason = "only this workspace uses the crate, and a comment that repeats a name says nothing"
)]

mod access;
mod activity;
mod app;
mod configuration;
mod context;
mod daemon;
mod durable;
mod home;
mod http;
mod jobs;
mod language_servers;
mod life;
mod mcp;
mod metrics;
mod needs;
mod options;
mod ownership;
mod page;
mod plans;
mod processes;
mod scratch;
mod server;
mod sessions;
mod signals;
mod start_error;
mod system;
mod times;

pub use ::plans::PlansSettings;
pub use access::TokenError;
pub use configuration::{ConfigurationError, KEYS, Key, Kind, alike, settings_of};
pub use daemon::{Connections, Daemon, Ended, ShutdownHandle};
pub use durable::{
    Database, DatabaseUrl, HomeIdentityError, ImportLogError, Imported, LogStartError, adopt_home,
    check_log_file, import_log, renew_home,
};
pub use eventlog::ArchiveWatch;
pub use eventlog::{Liveness, start_time_ticks};
pub use home::{Home, HomeError, SOCKET_PATH_LIMIT, check_directory};
pub use http::openapi_json;
pub use life::Phase;
pub use options::{
    DEFAULT_PORT, LanguageOptions, Listen, Options, Signals, StartProgress, StreamLimit, Upkeep, WhenTaken,
};
pub use ownership::{Owner, Ownership, OwnershipError, read_owner};
pub use process::{
    DATABASE_URL, Enforcement, KeeperProgram, OpenProcessesError, is_private, keep_if_asked,
    keep_memory_small, landlock_support,
};
pub use server::BindError;
pub use start_error::StartError;
