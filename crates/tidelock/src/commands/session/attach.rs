//! Watches a session: the running turn, and with `--follow` those that come after it.

use std::time::Instant;

use protocol::{Session, Turn, TurnList, TurnState};
use serde_json::{Value, json};

use super::ending;
use super::follow::follow;
use super::path;
use super::printer::{Beginning, TurnPrinter};
use super::view::Prompts;
use crate::cli::{AttachArguments, Reach};
use crate::client::{Client, Ended, Interrupts, LOOK_AGAIN_AFTER, PATIENCE, StreamEnd, absence};
use crate::commands::ids::SESSION;
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::printable;

const PAGE_TURNS: usize = 50;

pub(super) fn run(arguments: &AttachArguments, client: &Client) -> Result<Report, Failure> {
    let id = match &arguments.session {
        Some(wanted) => SESSION.find(wanted, client)?,
        None => running_here(client)?,
    };
    let mut beginning = arguments.tail.map_or(Beginning::Start, Beginning::Tail);
    let session = session(&id, client)?;
    let mut told = first(&session, client)?;
    let mut last = None;
    // The newest turn that had begun at the last check: turns that begin after it have yet to be shown. A
    // turn
    // that is removed from the queue never begins.
    let mut newest = session.last_turn;
    if let Some(turn) = &told {
        last = Some(watch(&id, turn, beginning, client)?);
        beginning = Beginning::Start;
        if has_begun(&id, turn, client)? {
            newest = Some(turn.clone());
        }
    } else if arguments.reach() == Reach::Past {
        let message = format!("no turn has started in {id} yet");
        return Err(Failure::new(Exit::Refused, "turn_not_found", message)
            .advise("send it a prompt with `tidelock session send`, or wait for one with --follow"));
    }
    while arguments.reach() == Reach::Follow && last != Some(Ended::NobodyReads) {
        let page_before = |before: Option<&str>| newest_turns(&id, before, client);
        for turn in turns_after(newest.as_deref(), page_before)? {
            last = Some(watch(&id, &turn, beginning, client)?);
            told = Some(turn.clone());
            newest = Some(turn);
        }
        until_another_begins(&id, newest.as_deref(), client)?;
    }
    let exit = match last {
        Some(Ended::Over { end: state, .. }) => ending::exit_of(state),
        _ => Exit::Failed,
    };
    let value = match &told {
        Some(turn) => json!({
            "session": client.fetch_patiently::<Value>(&path(&id, ""))?,
            "turn": client.fetch_patiently::<Value>(&super::turn_path(&id, turn, ""))?,
        }),
        None => json!({ "session": client.fetch_patiently::<Value>(&path(&id, ""))? }),
    };
    let mut notes = Vec::new();
    if let Some(turn) = value.get("turn") {
        let turn: Turn = printable(turn)?;
        let name = turn.state.name();
        let why = super::labels::why(&turn);
        let because = if why.is_empty() { why } else { format!(": {why}") };
        notes.push(format!("{} is {name}{because}", turn.id));
    }
    Ok(Report::success(value, String::new())
        .with_notes(notes)
        .with_exit(exit))
}

fn session(id: &str, client: &Client) -> Result<Session, Failure> {
    Ok(printable(&client.fetch_patiently(&path(id, ""))?)?)
}

/// The newest session of this directory with a running turn.
fn running_here(client: &Client) -> Result<String, Failure> {
    let (newest, here) = SESSION.newest_here("&running=true", client)?;
    newest.ok_or_else(|| {
        let message = format!("no turn is running in any session of {here}");
        Failure::new(Exit::Refused, "session_not_found", message).advise(
            "`tidelock session attach @` shows the newest turn; `tidelock session list` shows all sessions",
        )
    })
}

/// The turn to start with: the running one, the next one, or the newest.
fn first(session: &Session, client: &Client) -> Result<Option<String>, Failure> {
    if let Some(active) = &session.active {
        return Ok(Some(active.turn.clone()));
    }
    if let Some(next) = session.queue.first() {
        return Ok(Some(next.clone()));
    }
    Ok(newest_turns(&session.id, None, client)?
        .turns
        .into_iter()
        .next()
        .map(|turn| turn.id))
}

fn newest_turns(session: &str, before: Option<&str>, client: &Client) -> Result<TurnList, Failure> {
    Ok(printable(&client.fetch_patiently(&turns_path(session, before))?)?)
}

pub(in crate::commands) fn turns_path(session: &str, before: Option<&str>) -> String {
    let place = before.map_or_else(String::new, |before| format!("&before={before}"));
    path(session, &format!("/turns?limit={PAGE_TURNS}{place}"))
}

/// Whether a turn has done more than wait.
fn has_begun(session: &str, turn: &str, client: &Client) -> Result<bool, Failure> {
    let turn: Turn = printable(&client.fetch_patiently::<Value>(&super::turn_path(session, turn, ""))?)?;
    Ok(turn.started_at.is_some())
}

/// The turns that began after another one, in order.
pub(in crate::commands) fn turns_after(
    newest: Option<&str>,
    mut page_before: impl FnMut(Option<&str>) -> Result<TurnList, Failure>,
) -> Result<Vec<String>, Failure> {
    let mut newer = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let page = page_before(before.as_deref())?;
        let is_new = |id: &String| Some(id.as_str()) != newest;
        let ids: Vec<String> = page.turns.into_iter().map(|turn| turn.id).collect();
        let is_last = page.next.is_none() || !ids.iter().all(is_new);
        newer.extend(ids.into_iter().take_while(is_new));
        if is_last {
            newer.reverse();
            return Ok(newer);
        }
        before = page.next;
    }
}

fn watch(
    session: &str,
    turn: &str,
    beginning: Beginning,
    client: &Client,
) -> Result<Ended<TurnState>, Failure> {
    let mut printer = TurnPrinter::new(client, session, Prompts::Shown, beginning);
    // Ctrl-C ends this process and nothing else.
    let interrupts = &mut Interrupts::default();
    let ended = follow(client, session, turn, beginning, interrupts, &mut printer)?;
    printer.close();
    Ok(ended)
}

/// Returns when a newer turn has begun. The state decides: every wake-up reads it again.
fn until_another_begins(id: &str, newest: Option<&str>, client: &Client) -> Result<(), Failure> {
    let mut silent_since: Option<Instant> = None;
    // An event that arrives between the read and the wait is replayed after this position.
    let mut place = "0".to_owned();
    let interrupts = &mut Interrupts::default();
    loop {
        let now = session(id, client)?;
        if now.last_turn.as_deref() != newest {
            return Ok(());
        }
        let ended = client.next_event(&path(id, "/events"), &mut place, interrupts, || {
            silent_since = None;
            false
        });
        if matches!(ended, Ok(StreamEnd::Enough)) {
            continue;
        }
        if let Some(error) = absence(ended)? {
            let since = *silent_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= PATIENCE {
                return Err(error.into());
            }
        }
        client.pause(LOOK_AGAIN_AFTER, interrupts);
    }
}
