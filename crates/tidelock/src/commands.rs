//! What the commands do. Each one turns its arguments into a report or a failure.

mod breaker;
mod doctor;
mod down;
mod serve;
mod status;
mod up;

use crate::cli::{Cli, Command};
use crate::client::Client;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::Report;

/// Does what was asked.
pub(crate) fn run(cli: Cli) -> Result<Report, Failure> {
    let format = cli.format();
    let context = Context::from_environment()?;
    match cli.command {
        Command::Serve(arguments) => serve::run(arguments, &context, format),
        Command::Up => up::run(&context, &client(&context)?),
        Command::Down(arguments) => down::run(
            &arguments,
            &context,
            &client(&context)?.impatient(arguments.timeout),
        ),
        Command::Status => status::run(&context, &client(&context)?),
        Command::Doctor => doctor::run(&context, &client(&context)?),
        Command::Breaker(command) => breaker::run(&command, &context, &client(&context)?),
    }
}

fn client(context: &Context) -> Result<Client, Failure> {
    Client::new(context).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_resources",
            format!("this process cannot wait for input: {error}"),
        )
        .advise("see `tidelock doctor` for the limits on open files")
    })
}
