//! What can be done to a session besides prompting it: stop, fork, rename, put away, remove.

use std::time::Duration;

use protocol::{ArchiveSession, CancelTurn, ForkSession, RenameSession, Session};
use serde_json::{Value, json};

use super::pick::find_turn;
use super::{ask, find, path, post};
use crate::cli::{ArchiveSessionArguments, ForkArguments, RenameSessionArguments, SessionCancelArguments};
use crate::client::Client;
use crate::commands::lsp::printable::printable;
use crate::commands::plan::short;
use crate::context::Context;
use crate::error::Failure;
use crate::output::Report;
use crate::start::{Repeat, with_daemon};

/// How long a stop may take: the daemon waits for 10 seconds, and a busy machine takes its time.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn cancel(
    arguments: &SessionCancelArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let id = find(&arguments.session.session, context, client)?;
    let turn = match &arguments.turn {
        Some(turn) => Some(find_turn(turn, &id, context, client)?),
        None => None,
    };
    let request = CancelTurn {
        turn,
        why: arguments.why.clone(),
    };
    // A second wish to stop the same turn changes nothing. Without a name it could be meant for the next one.
    let repeat = match request.turn {
        Some(_) => Repeat::Harmless,
        None => Repeat::Harmful,
    };
    let answer = ask(context, client, repeat, |client| {
        client.post_within(&path(&id, "/cancel"), Some(&request), STOP_TIMEOUT)
    })?;
    let session: Session = printable(&answer)?;
    Ok(Report::success(answer, stopped(&session)))
}

fn stopped(session: &Session) -> String {
    let waiting = match session.queue.len() {
        0 => String::new(),
        count => format!("; {count} waiting"),
    };
    match &session.active {
        Some(active) if active.stop.is_some() => format!(
            "{} is being stopped; see `tidelock session show {}`\n",
            active.turn,
            short(&session.id)
        ),
        Some(active) => format!("{} is running now{waiting}\n", active.turn),
        None => format!("Session {} is idle{waiting}.\n", short(&session.id)),
    }
}

pub(super) fn fork(arguments: &ForkArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let id = find(&arguments.session.session, context, client)?;
    let turn = match &arguments.at {
        Some(turn) => Some(find_turn(turn, &id, context, client)?),
        None => None,
    };
    let request = ForkSession { session: None, turn };
    let surroundings = (context, client);
    let answer = post(&path(&id, "/fork"), &request, Repeat::Harmful, surroundings)?;
    let session: Session = printable(&answer)?;
    let text = format!("{} continues from {id}\n", session.id);
    let note = format!(
        "continue with `tidelock session send {} PROMPT`",
        short(&session.id)
    );
    Ok(Report::success(answer, text).with_notes(vec![note]))
}

pub(super) fn rename(
    arguments: &RenameSessionArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let request = RenameSession {
        title: arguments.title.clone(),
    };
    changed(&arguments.session.session, "/rename", &request, (context, client))
}

pub(super) fn archive(
    arguments: &ArchiveSessionArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let request = ArchiveSession {
        archived: !arguments.undo,
    };
    changed(
        &arguments.session.session,
        "/archive",
        &request,
        (context, client),
    )
}

/// Changes something that is the same when it is changed twice.
fn changed(
    wanted: &str,
    rest: &str,
    request: &impl serde::Serialize,
    (context, client): (&Context, &Client),
) -> Result<Report, Failure> {
    let id = find(wanted, context, client)?;
    let answer: Value = post(&path(&id, rest), request, Repeat::Harmless, (context, client))?;
    let session: Session = printable(&answer)?;
    let text = match (rest, session.archived) {
        ("/archive", true) => format!("{id} is archived\n"),
        ("/archive", false) => format!("{id} is no longer archived and accepts prompts again\n"),
        _ => format!("{id} is now called {}\n", session.title),
    };
    Ok(Report::success(answer, text))
}

pub(super) fn remove(wanted: &str, context: &Context, client: &Client) -> Result<Report, Failure> {
    let id = find(wanted, context, client)?;
    with_daemon(context, client, Repeat::Harmful, |client| {
        client.delete(&path(&id, ""))
    })?;
    let text = format!("{id} was removed\n");
    Ok(Report::success(json!({ "id": id, "state": "removed" }), text))
}

#[cfg(test)]
mod tests {
    use protocol::StopRequest;

    use super::super::samples::{TURN, asking, session};
    use super::*;

    #[test]
    fn after_a_stop_it_is_told_what_is_left() {
        let waiting = Session {
            queue: vec![TURN.to_owned()],
            ..session()
        };
        let next = asking(waiting.clone(), &[]);
        let mut late = asking(session(), &[]);
        if let Some(active) = &mut late.active {
            active.stop = Some(StopRequest {
                by: "me".to_owned(),
                why: String::new(),
                at: String::new(),
            });
        }
        for (session, expected) in [
            (session(), "Session R9S1TX is idle.\n".to_owned()),
            (waiting, "Session R9S1TX is idle; 1 waiting.\n".to_owned()),
            (next, format!("{TURN} is running now; 1 waiting\n")),
            (
                late,
                format!("{TURN} is being stopped; see `tidelock session show R9S1TX`\n"),
            ),
        ] {
            assert_eq!(stopped(&session), expected);
        }
    }
}
