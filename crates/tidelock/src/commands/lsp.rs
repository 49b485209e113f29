//! `tidelock lsp`: queries and manages language servers.
//!
//! A server's output comes from others: programs, repositories, the authors of the code. Everything shown to people
//! goes through `printable` first, so that no server can control the terminal.

mod answers;
mod config;
mod diagnostics;
mod locations;
mod pick;
mod query;
mod server_table;
mod servers;

use std::time::Duration;

use crate::cli::LspCommand;
use crate::client::Client;
use crate::error::Failure;
use crate::output::Report;

#[cfg(test)]
pub(super) use config::tests as config_tests;
pub(super) use config::{read as read_config, row as config_row};

/// How long the daemon may take for operations with their own limits: a start, a restart, a query without
/// `--timeout`. Loading a large workspace takes minutes; a daemon that has not answered by then has lost the request.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

pub(super) fn run(command: &LspCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        LspCommand::List => servers::list(client),
        LspCommand::Start(arguments) => servers::start(arguments, client),
        LspCommand::Stop(arguments) => servers::stop(arguments, client),
        LspCommand::Restart(arguments) => servers::restart(arguments, client),
        LspCommand::Health(arguments) => servers::health(&arguments.server, client),
        LspCommand::Log(arguments) => servers::log(&arguments.server, client),
        LspCommand::Config(arguments) => config::show(arguments, client),
        LspCommand::Trust(arguments) => config::trust(arguments, client),
        LspCommand::Request(arguments) => query::raw(arguments, client),
        _ => query::run(command, client),
    }
}
