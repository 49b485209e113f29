//! `tidelock plan`: isolated changes, applied whole or not at all.
//!
//! - `watch` waits until a plan is in a given state, and `sandboxed` runs a command in one; both serve
//!   `tidelock exec` too.
//! - `diff` and its helpers (`stat`, `paint`, `pager`) show what changed; `outcome` and `conflicts` show the result
//!   of an attempt to apply it.
//! - The rest are views of plans, one file each, with their wording in `labels`.
//!
//! A patch goes to a pipe byte for byte. Everything else that others wrote (paths, titles, lines of files) is made
//! printable first.

mod cat;
mod change;
mod changesets;
mod check;
mod conflicts;
mod diff;
mod exec;
mod labels;
mod list;
mod log;
mod open;
mod outcome;
mod overlaps;
mod pager;
mod paint;
mod record;
pub(super) mod sandboxed;
mod show;
mod stat;
mod watch;

#[cfg(test)]
pub(super) mod samples;

use std::time::Duration;

pub(super) use check::Aside;
pub(super) use diff::{columns, read_diff};
pub(super) use labels::{next as next_lines, short, summary};
pub(super) use open::order;
pub(super) use outcome::{Attempt, outcome_text, outcome_text_of};
use serde::de::DeserializeOwned;
use serde_json::Value;
pub(super) use show::checks as checks_text;
pub(super) use stat::stat;
pub(super) use watch::until_left;

use crate::cli::PlanCommand;
use crate::client::{Client, path_segment};
use crate::error::Failure;
use crate::output::Report;
use crate::start::Repeat;

pub(super) const PLANS: &str = "/v1/plans";

/// The timeout for operations that read or write many files. The first plan of a large workspace copies all of it.
const FILES_TIMEOUT: Duration = Duration::from_secs(30 * 60);

pub(super) fn run(command: &PlanCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        PlanCommand::New(arguments) => open::run(arguments, client),
        PlanCommand::List(arguments) => list::list(arguments, client),
        PlanCommand::Show(arguments) => show::show(&arguments.plan, client),
        PlanCommand::Diff(arguments) => diff::run(arguments, client),
        PlanCommand::Exec(arguments) => exec::run(arguments, client),
        PlanCommand::Record(arguments) => record::run(arguments, client),
        PlanCommand::Cat(arguments) => cat::run(arguments, client),
        PlanCommand::Changesets(arguments) => changesets::run(&arguments.plan, client),
        PlanCommand::Log(arguments) => log::run(arguments, client),
        PlanCommand::Seal(arguments) => change::seal(&arguments.plan, client),
        PlanCommand::Check(arguments) => check::run(arguments, client),
        PlanCommand::Apply(arguments) => outcome::run_apply(arguments, client),
        PlanCommand::Undo(arguments) => outcome::run_undo(arguments, client),
        PlanCommand::Refresh(arguments) => outcome::run_refresh(&arguments.plan, client),
        PlanCommand::Discard(arguments) => change::discard(arguments, client),
        PlanCommand::Forget(arguments) => change::forget(arguments, client),
        PlanCommand::Gc(arguments) => change::collect(arguments, client),
    }
}

pub(super) fn path(id: &str, rest: &str) -> String {
    format!("{PLANS}/{}{rest}", path_segment(id))
}

pub(super) fn get(id: &str, rest: &str, client: &Client) -> Result<Value, Failure> {
    client.ask(Repeat::Harmless, |client| {
        client.get_within(&path(id, rest), FILES_TIMEOUT)
    })
}

/// Sends an operation on a plan that may take a while.
pub(super) fn post<T: DeserializeOwned>(
    path: &str,
    body: &impl serde::Serialize,
    repeat: Repeat,
    client: &Client,
) -> Result<T, Failure> {
    client.ask(repeat, |client| {
        client.post_within(path, Some(body), FILES_TIMEOUT)
    })
}
