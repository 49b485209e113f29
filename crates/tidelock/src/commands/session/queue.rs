//! The prompts that wait, before they run.

use protocol::{EditQueued, TurnList};
use serde_json::{Value, json};

use super::pick::find_turn;
use super::show::turn_rows;
use super::{ask, find, get, path, post};
use crate::cli::{QueueArguments, QueueCommand};
use crate::client::{Client, path_segment};
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::Failure;
use crate::output::Report;
use crate::start::{Repeat, with_daemon};

pub(super) fn run(arguments: &QueueArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let session = find(&arguments.session.session, context, client)?;
    let turn_of = |wanted: &str| find_turn(wanted, &session, context, client);
    let change = |turn: &str, request: &EditQueued| -> Result<Value, Failure> {
        let path = path(&session, &format!("/queue/{}", path_segment(turn)));
        ask(context, client, Repeat::Harmless, |client| {
            client.put(&path, request)
        })
    };
    match arguments.command.as_ref().unwrap_or(&QueueCommand::List) {
        QueueCommand::List => {}
        QueueCommand::Edit { turn, text } => {
            let request = EditQueued {
                prompt: Some(text.clone()),
                place: None,
            };
            change(&turn_of(turn)?, &request)?;
        }
        QueueCommand::Move { turn, place } => {
            let request = EditQueued {
                prompt: None,
                place: Some(place - 1),
            };
            change(&turn_of(turn)?, &request)?;
        }
        QueueCommand::Here => {
            let surroundings = (context, client);
            post(
                &path(&session, "/here"),
                &json!({}),
                Repeat::Harmless,
                surroundings,
            )?;
        }
        QueueCommand::Rm { turn } => {
            let turn = turn_of(turn)?;
            let path = path(&session, &format!("/queue/{}", path_segment(&turn)));
            with_daemon(context, client, Repeat::Harmful, |client| client.delete(&path))?;
        }
    }
    // Whatever was done, this is how it is now.
    let answer = get(&path(&session, "/queue"), context, client)?;
    let waiting: TurnList = printable(&answer)?;
    let text = if waiting.turns.is_empty() {
        "No prompts are waiting.\n".to_owned()
    } else {
        turn_rows(context.palette, &waiting.turns)
    };
    let value = json!({ "session": session, "turns": answer["turns"] });
    Ok(Report::success(value, text))
}
