//! What the commands do. Each one turns its arguments into a report or a failure.

mod acp;
mod activity;
mod agent;
mod backup;
mod breaker;
mod config;
mod context;
mod doctor;
mod down;
mod exec;
mod export;
mod generate;
mod history;
mod home;
mod ids;
mod import;
mod job;
mod join;
mod lsp;
mod machine;
mod mcp;
mod needs;
mod plan;
mod ps;
mod purge;
mod quarantine;
mod run;
mod serve;
mod session;
mod shell;
mod status;
mod up;
mod why;
mod workspace;

use crate::cli::{AgentCommand, Cli, Command};
use crate::client::Client;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::Report;

/// Does what was asked.
pub(crate) fn run(cli: Cli) -> Result<Report, Failure> {
    let format = cli.format();
    match &cli.command {
        Command::Completions(arguments) => return Ok(generate::completions(arguments)),
        Command::Man(arguments) => return generate::man(arguments),
        _ => {}
    }
    let context = Context::from_environment()?;
    match cli.command {
        // Answered above: they work wherever they are.
        Command::Completions(_) | Command::Man(_) => Ok(Report::already_told()),
        Command::Config(arguments) => config::run(&arguments, &context, &client(&context)?),
        Command::Serve(arguments) => serve::run(arguments, &context, format),
        Command::Up => up::run(&context, &client(&context)?),
        Command::Down(arguments) => down::run(
            &arguments,
            &context,
            &client(&context)?.impatient(arguments.timeout),
        ),
        Command::Purge(arguments) => purge::run(
            &arguments,
            &context,
            &client(&context)?.impatient(arguments.timeout),
        ),
        Command::Status => status::run(&context, &client(&context)?),
        Command::Doctor(arguments) => doctor::run(arguments.depth(), &context, &client(&context)?),
        Command::Backup(arguments) => backup::run(&arguments, &context, &client(&context)?),
        Command::Export(arguments) => export::run(&arguments, &context, format, &client(&context)?),
        Command::Quarantine(command) => quarantine::run(&command, &context, format, &client(&context)?),
        Command::Join(arguments) => join::run(&arguments, &context, &client(&context)?),
        Command::Import(arguments) => import::run(&arguments, &context),
        Command::Home(command) => home::run(&command, &context),
        Command::Lsp(command) => lsp::run(&command, &context, &client(&context)?),
        Command::Run(arguments) => run::run(&arguments, &context, format, &client(&context)?),
        Command::Session(command) => session::run(&command, &context, format, &client(&context)?),
        Command::Agent(AgentCommand::List) => agent::list(&context, &client(&context)?),
        Command::Acp(arguments) => acp::run(arguments, context),
        Command::Job(command) => job::run(&command, &context, format, &client(&context)?),
        Command::Exec(arguments) => exec::run(&arguments, &context, format, &client(&context)?),
        Command::Plan(command) => plan::run(&command, &context, format, &client(&context)?),
        Command::Workspace(command) => workspace::run(&command, &context, &client(&context)?),
        Command::Context(arguments) => context::run(&arguments, &context, format, &client(&context)?),
        Command::Index(command) => context::run_index(&command, &context, &client(&context)?),
        Command::Mcp(arguments) => mcp::run(&arguments, &context, &client(&context)?),
        Command::Needs => needs::run(&context, &client(&context)?),
        Command::Activity(arguments) => activity::run(&arguments, &context, &client(&context)?),
        Command::Ps => ps::run(&context, &client(&context)?),
        Command::Why(arguments) => why::run(&arguments, &context, &client(&context)?),
        Command::Breaker(command) => breaker::run(&command, &context, format, &client(&context)?),
    }
}

fn client(context: &Context) -> Result<Client, Failure> {
    Client::new(context).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_resources",
            format!("can't wait for input: {error}"),
        )
        .advise("see `tidelock doctor` for the limits on open files")
    })
}
