//! One running language server: its process, its connection, what it is sent and what it reports.
//!
//! `launcher` brings a server up and hands it to the lifecycle manager as a [`LanguageServer`]. Its [`Site`]
//! holds what outlives a process (how it is started, what is open in it, what it logged); `instance` and
//! `reports` hold what ends with it.
//!
//! **Who owns the state:** the manager owns the server; the server owns its child, its client and its tasks.
//! When it is stopped, all of them end.

mod initialize;
mod instance;
mod launcher;
mod record;
mod reports;
mod site;

pub(crate) use instance::LanguageServer;
pub(crate) use launcher::Launcher;
pub(crate) use record::stderr_lines;
pub use record::{RecordLevel, RecordLine};
pub(crate) use reports::Awaited;
pub(crate) use site::{Site, Sites};
