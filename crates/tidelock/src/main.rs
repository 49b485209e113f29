//! The program `tidelock`: the command line, and the daemon behind `tidelock serve`.
//!
//! A command turns arguments into one [`Report`](output::Report) or one [`Failure`]; only this
//! file and `output` write to the terminal, and only this file ends the process.

mod background;
mod cli;
mod client;
mod commands;
mod context;
mod daemon_process;
mod environment;
mod error;
mod launch;
mod log_file;
mod logging;
mod output;
mod paths;
mod printable;
mod progress;
mod settings;
mod start;
mod start_lock;
mod units;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::error::Failure;
use crate::output::Format;

fn main() -> ExitCode {
    // This must come first, while there is one thread: the daemon runs this program again as the keeper of
    // its
    // processes.
    daemon::keep_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    let format = cli.format();
    match commands::run(cli) {
        Ok(report) => output::finish(format, &report),
        Err(failure) => output::fail(format, &failure),
    }
}

/// Handles `--help` and `--version`, which the parser reports as errors too, and reports everything else.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    let asked_for_help = !error.use_stderr();
    if asked_for_help || cli::requested_format(std::env::args_os()) == Format::Human {
        // An argument may come from anywhere, and the parser repeats it unchanged.
        let is_harmless = |text: &OsString| {
            let text = text.to_string_lossy();
            !text.contains(|letter| letter != '\n' && output::speaks_to_terminal(letter))
        };
        // If the terminal is gone, there is no one to tell.
        if asked_for_help || std::env::args_os().all(|argument| is_harmless(&argument)) {
            drop(error.print());
        } else {
            output::fail(Format::Human, &Failure::usage(error));
        }
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
    }
    output::fail(Format::Json, &Failure::usage(error))
}
