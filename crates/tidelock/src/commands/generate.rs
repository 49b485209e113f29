//! `tidelock completions` and `tidelock man`: shell completions and man pages, generated from the argument definitions.

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::aot::{Bash, Fish, Zsh, generate};
use serde_json::json;

use crate::cli::{Cli, CompletionsArguments, ManArguments, ShellName};
use crate::error::{Exit, Failure};
use crate::output::Report;

const PROGRAM: &str = "tidelock";

pub(super) fn completions(arguments: &CompletionsArguments) -> Report {
    let (mut command, mut script) = (Cli::command(), Vec::new());
    match arguments.shell {
        ShellName::Bash => generate(Bash, &mut command, PROGRAM, &mut script),
        ShellName::Zsh => generate(Zsh, &mut command, PROGRAM, &mut script),
        ShellName::Fish => generate(Fish, &mut command, PROGRAM, &mut script),
    }
    let script = String::from_utf8_lossy(&script).into_owned();
    Report::success(json!({ "script": script }), script)
}

pub(super) fn man(arguments: &ManArguments) -> Result<Report, Failure> {
    let Some(directory) = &arguments.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command())
            .render(&mut page)
            .map_err(|error| failed(Path::new("the page"), &error))?;
        let page = String::from_utf8_lossy(&page).into_owned();
        return Ok(Report::success(json!({ "page": page }), page));
    };
    let written = write_pages(directory).map_err(|error| failed(directory, &error))?;
    let text = format!("{} pages in {}\n", written.len(), directory.display());
    Ok(Report::success(json!({ "files": written }), text))
}

/// The command as `man` shows it. The pages of `help` would duplicate all others.
fn command() -> clap::Command {
    Cli::command().disable_help_subcommand(true)
}

fn write_pages(directory: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(directory)?;
    let (mut root, mut written) = (command(), Vec::new());
    root.build();
    write_page(&root, directory, &mut written)?;
    Ok(written)
}

fn write_page(command: &clap::Command, directory: &Path, written: &mut Vec<PathBuf>) -> io::Result<()> {
    written.push(clap_mangen::Man::new(command.clone()).generate_to(directory)?);
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .try_for_each(|below| write_page(below, directory, written))
}

fn failed(what: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        "output_failed",
        format!("{} cannot be written: {error}", what.display()),
    )
    .advise("make sure that there's enough space where the output goes, and try again")
}
