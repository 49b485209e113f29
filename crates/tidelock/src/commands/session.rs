//! `tidelock session`: conversations with agents, that can be left and found again.
//!
//! - `prompt` makes a request of arguments, and `converse` sends it and stays; both serve `tidelock run` too.
//! - `follow` reads the stream of a turn, over restarts of the daemon. `tell` shows it: `scene` decides what is to be seen,
//!   `page` knows where lines begin and end, and `typed` takes answers from the keyboard. `ending` says what came of it.
//! - `pick` finds the session that is meant; the rest are views of sessions, one file each, with their words in `words`.
//!
//! Whatever an agent says is made printable before it reaches a terminal. Programs (`--json`) get it as it is.

mod answer;
pub(super) mod attach;
mod change;
pub(super) mod converse;
mod ending;
mod export;
pub(super) mod follow;
mod list;
mod page;
mod pick;
pub(super) mod prompt;
mod queue;
mod scene;
mod show;
pub(super) mod tell;
mod tools;
mod typed;
mod words;

#[cfg(test)]
mod samples;

pub(super) use pick::find;
use serde_json::Value;
pub(super) use words::agent_state;

use crate::cli::SessionCommand;
use crate::client::{Client, ClientError, path_segment};
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Format, Report};
use crate::start::{Repeat, with_daemon};

pub(super) const SESSIONS: &str = "/v1/sessions";

pub(super) fn run(
    command: &SessionCommand,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    match command {
        SessionCommand::List(arguments) => list::list(arguments, context, client),
        SessionCommand::Show(arguments) => show::show(&arguments.session, context, client),
        SessionCommand::Attach(arguments) => attach::run(arguments, context, format, client),
        SessionCommand::Send(arguments) => converse::send(arguments, context, format, client),
        SessionCommand::Cancel(arguments) => change::cancel(arguments, context, client),
        SessionCommand::Queue(arguments) => queue::run(arguments, context, client),
        SessionCommand::Answer(arguments) => answer::run(arguments, context, client),
        SessionCommand::Fork(arguments) => change::fork(arguments, context, client),
        SessionCommand::Rename(arguments) => change::rename(arguments, context, client),
        SessionCommand::Archive(arguments) => change::archive(arguments, context, client),
        SessionCommand::Export(arguments) => export::run(arguments, context, client),
        SessionCommand::Rm(arguments) => change::remove(&arguments.session, context, client),
    }
}

/// The path of a session, or of something about it.
pub(super) fn path(id: &str, rest: &str) -> String {
    format!("{SESSIONS}/{}{rest}", path_segment(id))
}

/// The path of a turn, or of something about it.
pub(super) fn turn_path(session: &str, turn: &str, rest: &str) -> String {
    path(session, &format!("/turns/{}{rest}", path_segment(turn)))
}

pub(super) fn ask(
    context: &Context,
    client: &Client,
    repeat: Repeat,
    work: impl Fn(&Client) -> Result<Value, ClientError>,
) -> Result<Value, Failure> {
    with_daemon(context, client, repeat, work).map(|(answer, _)| answer)
}

/// Something that is only looked at.
pub(super) fn get(path: &str, context: &Context, client: &Client) -> Result<Value, Failure> {
    ask(context, client, Repeat::Harmless, |client| client.get(path))
}

/// Has something done.
fn post(
    path: &str,
    body: &impl serde::Serialize,
    repeat: Repeat,
    (context, client): (&Context, &Client),
) -> Result<Value, Failure> {
    ask(context, client, repeat, |client| client.post(path, Some(body)))
}
