//! `tidelock session`: conversations with agents that you can leave and come back to.
//!
//! - `prompt` builds a request from arguments, and `converse` sends it and stays; both serve `tidelock run` too.
//! - `follow` reads the stream of a turn across restarts of the daemon. `printer` shows it: `view` decides what to
//!   show, `page` tracks where lines begin and end, and `typed` reads answers from the keyboard. `ending` reports the
//!   result.
//! - The rest are views of sessions, one file each, with their wording in `labels`.
//!
//! Everything an agent says is made printable before it reaches a terminal. Programs (`--json`) get it unchanged.

mod answer;
pub(super) mod attach;
mod change;
pub(super) mod converse;
mod ending;
mod export;
pub(super) mod follow;
mod labels;
mod list;
mod page;
pub(super) mod printer;
pub(super) mod prompt;
mod queue;
mod show;
mod tools;
mod typed;
mod view;

#[cfg(test)]
mod samples;

pub(super) use labels::agent_state;
use serde::de::DeserializeOwned;

use crate::cli::SessionCommand;
use crate::client::{Client, path_segment};
use crate::error::Failure;
use crate::output::Report;
use crate::start::Repeat;

pub(super) const SESSIONS: &str = "/v1/sessions";

pub(super) fn run(command: &SessionCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        SessionCommand::List(arguments) => list::list(arguments, client),
        SessionCommand::Show(arguments) => show::show(&arguments.session, client),
        SessionCommand::Attach(arguments) => attach::run(arguments, client),
        SessionCommand::Send(arguments) => converse::send(arguments, client),
        SessionCommand::Cancel(arguments) => change::cancel(arguments, client),
        SessionCommand::Queue(arguments) => queue::run(arguments, client),
        SessionCommand::Answer(arguments) => answer::run(arguments, client),
        SessionCommand::Fork(arguments) => change::fork(arguments, client),
        SessionCommand::Rename(arguments) => change::rename(arguments, client),
        SessionCommand::Archive(arguments) => change::archive(arguments, client),
        SessionCommand::Export(arguments) => export::run(arguments, client),
        SessionCommand::Rm(arguments) => change::remove(&arguments.session, client),
    }
}

pub(super) fn path(id: &str, rest: &str) -> String {
    format!("{SESSIONS}/{}{rest}", path_segment(id))
}

pub(super) fn turn_path(session: &str, turn: &str, rest: &str) -> String {
    path(session, &format!("/turns/{}{rest}", path_segment(turn)))
}

fn post<T: DeserializeOwned>(
    path: &str,
    body: &impl serde::Serialize,
    repeat: Repeat,
    client: &Client,
) -> Result<T, Failure> {
    client.ask(repeat, |client| client.post(path, Some(body)))
}
