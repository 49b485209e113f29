//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! `test` is the one command that newcomers and the build machine both run; the others are parts of it or companions.
//! Nothing here is shipped. The crate deliberately has only two small dependencies, since it is compiled before every
//! run.

mod arguments;
mod child;
mod commands;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use arguments::Command;

fn main() -> ExitCode {
    let command = match arguments::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error}\n\n{}", arguments::HELP);
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    if matches!(command, Command::Help) {
        println!("{}", arguments::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = workspace::Workspace::load()?;
    match command {
        Command::Help => {}
        Command::Test(selection) => return test::run(&workspace, selection),
        Command::Tidy => tidy::run(&workspace)?,
        Command::Docs => commands::docs(&workspace)?,
        Command::Bench(only) => commands::bench(&workspace, only.as_deref())?,
        Command::Coverage => commands::coverage(&workspace)?,
        Command::Audit => commands::audit(&workspace)?,
    }
    Ok(ExitCode::SUCCESS)
}
