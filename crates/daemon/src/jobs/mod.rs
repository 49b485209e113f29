//! Jobs, as this daemon runs and shows them.
//!
//! - `start` sets up the service.
//! - `acts` has the operations: one function for each, shared by HTTP, MCP and the page.
//! - `command` is the handler that runs commands. `environments` stores the environments of their callers, outside the
//!   log.
//! - `inputs` connects commands with the clients that feed them.
//! - `workers` stores the user's choice of how many jobs run at once.
//! - `wire` converts jobs for the wire, for the HTTP API and the page.

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
