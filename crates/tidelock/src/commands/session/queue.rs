//! The queued prompts.

use protocol::{EditQueued, TurnList};
use serde_json::{Value, json};

use super::show::turn_rows;
use super::{path, post};
use crate::cli::{QueueArguments, QueueCommand};
use crate::client::{Client, path_segment};
use crate::commands::ids::{SESSION, TURN};
use crate::error::Failure;
use crate::output::Report;
use crate::printable::printable;
use crate::start::Repeat;

pub(super) fn run(arguments: &QueueArguments, client: &Client) -> Result<Report, Failure> {
    let session = SESSION.find(&arguments.session.session, client)?;
    let turn_of = |wanted: &str| TURN.find_of(wanted, &session, client);
    let change = |turn: &str, request: &EditQueued| -> Result<Value, Failure> {
        let path = path(&session, &format!("/queue/{}", path_segment(turn)));
        client.ask(Repeat::Harmless, |client| client.put(&path, request))
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
            post::<Value>(&path(&session, "/here"), &json!({}), Repeat::Harmless, client)?;
        }
        QueueCommand::Rm { turn } => {
            let turn = turn_of(turn)?;
            let path = path(&session, &format!("/queue/{}", path_segment(&turn)));
            client.ask(Repeat::Harmful, |client| client.delete(&path))?;
        }
    }
    // Show the current state, whatever was changed.
    let answer = client.fetch(&path(&session, "/queue"))?;
    let waiting: TurnList = printable(&answer)?;
    let text = if waiting.turns.is_empty() {
        "No prompts are waiting.\n".to_owned()
    } else {
        turn_rows(client.palette(), &waiting.turns)
    };
    let value = json!({ "session": session, "turns": answer["turns"] });
    Ok(Report::success(value, text))
}
