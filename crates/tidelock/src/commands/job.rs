//! `tidelock job`: commands that outlive this process.
//!
//! - `submission` builds a request from arguments, and `run` sends it.
//! - `follow` reads a job's output across restarts of the daemon, and `printer` shows it. `outcome` decides the exit
//!   code.
//! - The rest are views of jobs.
//!
//! A job's output goes to the terminal unchanged, like that of any command. Everything else that others wrote
//! (titles, reasons) is made printable first.

mod bar;
mod change;
pub(super) mod escapes;
mod follow;
pub(super) mod input;
mod list;
mod logs;
pub(super) mod outcome;
mod printer;
mod run;
mod show;
mod submission;
mod times;
mod wait;

pub(super) use follow::{JobMessage, Listener, follow, follow_with_input};
pub(super) use outcome::{INTERRUPTED, ended_text, exit_of};
pub(super) use printer::{Escapes, OutputPrinter};
pub(super) use run::catch_interrupts;
pub(super) use submission::{environment, environment_here, source, stdin, terminal, write_below};
pub(super) use times::{age, between, local, with_age};

use crate::cli::JobCommand;
use crate::client::{Client, path_segment};
use crate::error::Failure;
use crate::output::Report;

pub(super) const JOBS: &str = "/v1/jobs";

pub(super) fn run(command: &JobCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        JobCommand::Run(arguments) => run::run(arguments, client),
        JobCommand::List(arguments) => list::list(arguments, client),
        JobCommand::Show(arguments) => show::show(&arguments.job, client),
        JobCommand::Logs(arguments) => logs::logs(arguments, client),
        JobCommand::Wait(arguments) => wait::run(arguments, client),
        JobCommand::Cancel(arguments) => change::cancel(arguments, client),
        JobCommand::Retry(arguments) => run::retry(arguments, client),
        JobCommand::Gc(arguments) => change::collect(arguments, client),
        JobCommand::Workers(arguments) => change::workers(arguments, client),
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("{JOBS}/{}{rest}", path_segment(id))
}
