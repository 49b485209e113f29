//! `tidelock job`: commands that outlive this one.
//!
//! - `submission` makes a request of arguments, and `run` sends it.
//! - `follow` reads what a job says, over restarts of the daemon, and `tell` shows it. `outcome` says how to end.
//! - `pick` finds the job that is meant; the rest are its views.
//!
//! What a job says goes to the terminal as it is, like the output of any command. Everything else that others wrote
//! (titles, reasons) is made printable first.

mod bar;
mod change;
pub(super) mod escapes;
mod follow;
pub(super) mod input;
mod list;
mod logs;
pub(super) mod outcome;
mod pick;
mod run;
mod show;
mod submission;
mod tell;
mod times;
mod wait;

pub(super) use follow::{Ended, Interrupted, Listener, Said, WhenInterrupted, follow};
pub(super) use outcome::{INTERRUPTED, ended_text, exit_of};
pub(super) use run::catch_interrupts;
pub(super) use submission::{environment, environment_here, source, stdin, terminal, write_below};
pub(super) use tell::{Escapes, Teller};
pub(super) use times::{age, between, local, with_age};

use serde_json::Value;

use crate::cli::JobCommand;
use crate::client::{Client, ClientError, path_segment};
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Format, Report};
use crate::start::{Repeat, with_daemon};

pub(super) const JOBS: &str = "/v1/jobs";

pub(super) fn run(
    command: &JobCommand,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    match command {
        JobCommand::Run(arguments) => run::run(arguments, context, format, client),
        JobCommand::List(arguments) => list::list(arguments, context, client),
        JobCommand::Show(arguments) => show::show(&arguments.job, context, client),
        JobCommand::Logs(arguments) => logs::logs(arguments, context, format, client),
        JobCommand::Wait(arguments) => wait::run(arguments, context, client),
        JobCommand::Cancel(arguments) => change::cancel(arguments, context, client),
        JobCommand::Retry(arguments) => run::retry(arguments, context, format, client),
        JobCommand::Gc(arguments) => change::collect(arguments, context, client),
        JobCommand::Workers(arguments) => change::workers(arguments, context, client),
    }
}

/// The path of a job, or of something about it.
fn path(id: &str, rest: &str) -> String {
    format!("{JOBS}/{}{rest}", path_segment(id))
}

fn ask(
    context: &Context,
    client: &Client,
    repeat: Repeat,
    work: impl Fn(&Client) -> Result<Value, ClientError>,
) -> Result<Value, Failure> {
    with_daemon(context, client, repeat, work).map(|(answer, _)| answer)
}
