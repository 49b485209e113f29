//! The commands. Each one turns its arguments into a report or a failure.

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
mod lines;
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

pub(crate) fn run(cli: Cli) -> Result<Report, Failure> {
    let format = cli.format();
    match &cli.command {
        Command::Completions(arguments) => return Ok(generate::completions(arguments)),
        Command::Man(arguments) => return generate::man(arguments),
        _ => {}
    }
    let context = Context::from_environment(format)?;
    match cli.command {
        // Handled above: they need no home.
        Command::Completions(_) | Command::Man(_) => Ok(Report::already_told()),
        Command::Config(arguments) => config::run(&arguments, &client(&context)?),
        Command::Serve(arguments) => serve::run(arguments, &context),
        Command::Up => up::run(&client(&context)?),
        Command::Down(arguments) => down::run(&arguments, &client(&context)?.impatient(arguments.timeout)),
        Command::Purge(arguments) => purge::run(&arguments, &client(&context)?.impatient(arguments.timeout)),
        Command::Status => status::run(&client(&context)?),
        Command::Doctor(arguments) => doctor::run(arguments.depth(), &client(&context)?),
        Command::Backup(arguments) => backup::run(&arguments, &client(&context)?),
        Command::Export(arguments) => export::run(&arguments, &client(&context)?),
        Command::Quarantine(command) => quarantine::run(&command, &client(&context)?),
        Command::Join(arguments) => join::run(&arguments, &client(&context)?),
        Command::Import(arguments) => import::run(&arguments, &context),
        Command::Home(command) => home::run(&command, &context),
        Command::Lsp(command) => lsp::run(&command, &client(&context)?),
        Command::Run(arguments) => run::run(&arguments, &client(&context)?),
        Command::Session(command) => session::run(&command, &client(&context)?),
        Command::Agent(AgentCommand::List) => agent::list(&client(&context)?),
        Command::Acp(arguments) => acp::run(arguments, context),
        Command::Job(command) => job::run(&command, &client(&context)?),
        Command::Exec(arguments) => exec::run(&arguments, &client(&context)?),
        Command::Plan(command) => plan::run(&command, &client(&context)?),
        Command::Workspace(command) => workspace::run(&command, &client(&context)?),
        Command::Context(arguments) => context::run(&arguments, &client(&context)?),
        Command::Index(command) => context::run_index(&command, &client(&context)?),
        Command::Mcp(arguments) => mcp::run(&arguments, &client(&context)?),
        Command::Needs => needs::run(&client(&context)?),
        Command::Activity(arguments) => activity::run(&arguments, &client(&context)?),
        Command::Ps => ps::run(&client(&context)?),
        Command::Why(arguments) => why::run(&arguments, &client(&context)?),
        Command::Breaker(command) => breaker::run(&command, &client(&context)?),
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
