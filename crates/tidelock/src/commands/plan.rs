//! `tidelock plan`: isolated pieces of work, applied whole or not at all.
//!
//! - `pick` finds the plan that is meant. `watch` waits until a plan is as wanted, and `sandboxed` runs a command in one;
//!   both serve `tidelock exec` too.
//! - `diff` and what it needs (`stat`, `paint`, `pager`) show what changed; `outcome` and `conflicts` what became of an
//!   attempt to apply it.
//! - The rest are views of plans, one file each, with their words in `words`.
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
mod list;
mod log;
mod moments;
mod open;
mod outcome;
mod overlaps;
mod pager;
mod paint;
mod pick;
mod record;
pub(super) mod sandboxed;
mod show;
mod stat;
mod watch;
mod words;

#[cfg(test)]
pub(super) mod samples;

use std::time::Duration;

pub(super) use check::{Aside, run_checks};
pub(super) use diff::{columns, read_diff};
pub(super) use open::order;
pub(super) use outcome::{Attempt, apply, outcome_text, outcome_text_of};
pub(super) use pick::{find, workspace_of, workspaces};
use serde_json::Value;
pub(super) use show::checks as checks_text;
pub(super) use stat::stat;
pub(super) use watch::until_left;
pub(super) use words::{is_passed, next as next_lines, short, summary};

use crate::cli::PlanCommand;
use crate::client::{Client, ClientError, path_segment};
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Format, Report};
use crate::start::{Repeat, with_daemon};

pub(super) const PLANS: &str = "/v1/plans";

/// How long something may take that reads or writes many files. A first plan of a large workspace copies all of it.
const FILES_TIMEOUT: Duration = Duration::from_secs(30 * 60);

pub(super) fn run(
    command: &PlanCommand,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    match command {
        PlanCommand::New(arguments) => open::run(arguments, context, client),
        PlanCommand::List(arguments) => list::list(arguments, context, client),
        PlanCommand::Show(arguments) => show::show(&arguments.plan, context, client),
        PlanCommand::Diff(arguments) => diff::run(arguments, context, format, client),
        PlanCommand::Exec(arguments) => exec::run(arguments, context, format, client),
        PlanCommand::Record(arguments) => record::run(arguments, context, client),
        PlanCommand::Cat(arguments) => cat::run(arguments, context, format, client),
        PlanCommand::Changesets(arguments) => changesets::run(&arguments.plan, context, client),
        PlanCommand::Log(arguments) => log::run(arguments, context, format, client),
        PlanCommand::Seal(arguments) => change::seal(&arguments.plan, context, client),
        PlanCommand::Check(arguments) => check::run(arguments, context, format, client),
        PlanCommand::Apply(arguments) => outcome::run_apply(arguments, context, client),
        PlanCommand::Undo(arguments) => outcome::run_undo(arguments, context, client),
        PlanCommand::Refresh(arguments) => outcome::run_refresh(&arguments.plan, context, client),
        PlanCommand::Discard(arguments) => change::discard(arguments, context, client),
        PlanCommand::Forget(arguments) => change::forget(arguments, context, client),
        PlanCommand::Gc(arguments) => change::collect(arguments, context, client),
    }
}

/// The path of a plan, or of something about it.
pub(super) fn path(id: &str, rest: &str) -> String {
    format!("{PLANS}/{}{rest}", path_segment(id))
}

pub(super) fn ask(
    context: &Context,
    client: &Client,
    repeat: Repeat,
    work: impl Fn(&Client) -> Result<Value, ClientError>,
) -> Result<Value, Failure> {
    with_daemon(context, client, repeat, work).map(|(answer, _)| answer)
}

/// A plan, or something about it.
pub(super) fn get(id: &str, rest: &str, context: &Context, client: &Client) -> Result<Value, Failure> {
    ask(context, client, Repeat::Harmless, |client| {
        client.get_within(&path(id, rest), FILES_TIMEOUT)
    })
}

/// Has something done to a plan that may take a while.
pub(super) fn post(
    path: &str,
    body: &impl serde::Serialize,
    repeat: Repeat,
    (context, client): (&Context, &Client),
) -> Result<Value, Failure> {
    ask(context, client, repeat, |client| {
        client.post_within(path, Some(body), FILES_TIMEOUT)
    })
}
