//! Jobs, as this daemon runs and shows them.
//!
//! - `start` puts the service together.
//! - `acts` carries out what is asked for: one function for each act, for HTTP, MCP and the page.
//! - `command` is the handler that runs commands. `environments` keeps what their callers gave them, out of the log.
//! - `inputs` is where commands meet the clients that feed them.
//! - `workers` is how many run at once, as somebody has chosen it.
//! - `wire` makes jobs into what goes over the wire, for the interface and for the page alike.

pub(crate) mod acts;
mod command;
mod environments;
mod inputs;
mod start;
pub(crate) mod wire;
mod workers;

#[cfg(test)]
pub(crate) use command::test_keeper;
pub(crate) use command::{CommandHandler, CommandLine, CommandPayload, PlanSite, SandboxAccess, Tool};
pub(crate) use environments::{Environments, NewCommand};
pub(crate) use inputs::{ClientInput, Input, Inputs, Taken};
pub(crate) use start::{COMMAND, start};
pub(crate) use workers::{MOST_WORKERS, Workers};
