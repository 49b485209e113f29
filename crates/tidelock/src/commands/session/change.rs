//! Changes to a session other than prompting it: cancel, fork, rename, archive, remove.

use std::time::Duration;

use protocol::{ArchiveSession, CancelTurn, ForkSession, RenameSession, Session};
use serde_json::json;

use super::{path, post};
use crate::cli::{ArchiveSessionArguments, ForkArguments, RenameSessionArguments, SessionCancelArguments};
use crate::client::Client;
use crate::commands::ids::{SESSION, TURN};
use crate::commands::plan::short;
use crate::error::Failure;
use crate::output::Report;
use crate::printable::Answer;
use crate::start::Repeat;

/// How long a cancel may take: the daemon waits for 10 seconds, and a busy machine is slower.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn cancel(arguments: &SessionCancelArguments, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(&arguments.session.session, client)?;
    let turn = arguments
        .turn
        .as_ref()
        .map(|turn| TURN.find_of(turn, &id, client))
        .transpose()?;
    let request = CancelTurn {
        turn,
        why: arguments.why.clone(),
    };
    // Cancelling the same turn again changes nothing. Without a turn id, a retry could hit the next one.
    let repeat = match request.turn {
        Some(_) => Repeat::Harmless,
        None => Repeat::Harmful,
    };
    let session: Answer<Session> = client.ask(repeat, |client| {
        client.post_within(&path(&id, "/cancel"), Some(&request), STOP_TIMEOUT)
    })?;
    Ok(Report::shown(stopped(&session), session))
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

pub(super) fn fork(arguments: &ForkArguments, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(&arguments.session.session, client)?;
    let turn = arguments
        .at
        .as_ref()
        .map(|turn| TURN.find_of(turn, &id, client))
        .transpose()?;
    let request = ForkSession { session: None, turn };
    let session: Answer<Session> = post(&path(&id, "/fork"), &request, Repeat::Harmful, client)?;
    let text = format!("{} continues from {id}\n", session.id);
    let note = format!(
        "continue with `tidelock session send {} PROMPT`",
        short(&session.id)
    );
    Ok(Report::shown(text, session).with_notes(vec![note]))
}

pub(super) fn rename(arguments: &RenameSessionArguments, client: &Client) -> Result<Report, Failure> {
    let request = RenameSession {
        title: arguments.title.clone(),
    };
    changed(&arguments.session.session, "/rename", &request, client)
}

pub(super) fn archive(arguments: &ArchiveSessionArguments, client: &Client) -> Result<Report, Failure> {
    let request = ArchiveSession {
        archived: !arguments.undo,
    };
    changed(&arguments.session.session, "/archive", &request, client)
}

/// Makes an idempotent change.
fn changed(
    wanted: &str,
    rest: &str,
    request: &impl serde::Serialize,
    client: &Client,
) -> Result<Report, Failure> {
    let id = SESSION.find(wanted, client)?;
    let session: Answer<Session> = post(&path(&id, rest), request, Repeat::Harmless, client)?;
    let text = match (rest, session.archived) {
        ("/archive", true) => format!("{id} is archived\n"),
        ("/archive", false) => format!("{id} is no longer archived and accepts prompts again\n"),
        _ => format!("{id} is now called {}\n", session.title),
    };
    Ok(Report::shown(text, session))
}

pub(super) fn remove(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(wanted, client)?;
    client.ask(Repeat::Harmful, |client| client.delete(&path(&id, "")))?;
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
