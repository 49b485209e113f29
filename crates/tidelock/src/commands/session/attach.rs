//! Watches a session: the turn that runs, and with `--follow` those that come after it.

use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, HeaderName};
use protocol::{Session, Turn, TurnList};
use serde_json::json;

use super::ending;
use super::follow::{Ended, WhenInterrupted, follow, get_patiently};
use super::pick::newest_here;
use super::scene::Prompts;
use super::tell::{Beginning, Teller};
use super::{find, path};
use crate::cli::{AttachArguments, Reach};
use crate::client::{Client, ClientError, Interrupts};
use crate::commands::lsp::paths::current_directory;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{Format, Report};
use crate::sse::EventReader;

/// How many turns are asked for at a time.
const PAGE_TURNS: usize = 50;
/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How long nobody may answer: long enough for a daemon to end and another one to start.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(
    arguments: &AttachArguments,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    let surroundings = (context, format, client);
    let id = match &arguments.session {
        Some(wanted) => find(wanted, context, client)?,
        None => running_here(context, client)?,
    };
    let mut beginning = arguments.tail.map_or(Beginning::Start, Beginning::Tail);
    let session = session(&id, context, client)?;
    let mut told = first(&session, (context, client))?;
    let mut last = None;
    // The newest turn that had begun when somebody looked: what begins after it is to be told. One that is taken away while it
    // waits never begins.
    let mut newest = session.last_turn;
    if let Some(turn) = &told {
        last = Some(watch((&id, turn), beginning, surroundings)?);
        beginning = Beginning::Start;
        if has_begun((&id, turn), (context, client))? {
            newest = Some(turn.clone());
        }
    } else if arguments.reach() == Reach::Past {
        let message = format!("no turn has started in {id} yet");
        return Err(Failure::new(Exit::Refused, "turn_not_found", message)
            .advise("send it a prompt with `tidelock session send`, or wait for one with --follow"));
    }
    while arguments.reach() == Reach::Follow && last != Some(Ended::NobodyReads) {
        let page_before = |before: Option<&str>| newest_turns(&id, before, (context, client));
        for turn in turns_after(newest.as_deref(), page_before)? {
            last = Some(watch((&id, &turn), beginning, surroundings)?);
            told = Some(turn.clone());
            newest = Some(turn);
        }
        until_another_begins(&id, newest.as_deref(), (context, client))?;
    }
    let exit = match last {
        Some(Ended::Turn(state)) => ending::exit_of(state),
        _ => Exit::Failed,
    };
    let value = match &told {
        Some(turn) => json!({
            "session": get_patiently(&path(&id, ""), context, client)?,
            "turn": get_patiently(&super::turn_path(&id, turn, ""), context, client)?,
        }),
        None => json!({ "session": get_patiently(&path(&id, ""), context, client)? }),
    };
    let mut notes = Vec::new();
    if let Some(turn) = value.get("turn") {
        let turn: Turn = printable(turn)?;
        let name = turn.state.name();
        let why = super::words::why(&turn);
        let because = if why.is_empty() { why } else { format!(": {why}") };
        notes.push(format!("{} is {name}{because}", turn.id));
    }
    Ok(Report {
        exit,
        ..Report::success(value, String::new()).with_notes(notes)
    })
}

fn session(id: &str, context: &Context, client: &Client) -> Result<Session, Failure> {
    Ok(printable(&get_patiently(&path(id, ""), context, client)?)?)
}

/// The newest session of this directory in which a turn runs.
fn running_here(context: &Context, client: &Client) -> Result<String, Failure> {
    let here = current_directory()?;
    let is_running = |session: &Session| session.active.is_some();
    let newest = newest_here(&here, is_running, context, client)?;
    newest.map(|session| session.id).ok_or_else(|| {
        let message = format!("no turn is running in any session of {}", here.display());
        Failure::new(Exit::Refused, "session_not_found", message).advise(
            "`tidelock session attach @` shows the newest turn; `tidelock session list` shows all sessions",
        )
    })
}

/// The turn to begin with: the one that runs, the next one, or the newest.
fn first(session: &Session, (context, client): (&Context, &Client)) -> Result<Option<String>, Failure> {
    if let Some(active) = &session.active {
        return Ok(Some(active.turn.clone()));
    }
    if let Some(next) = session.queue.first() {
        return Ok(Some(next.clone()));
    }
    Ok(newest_turns(&session.id, None, (context, client))?
        .turns
        .into_iter()
        .next()
        .map(|turn| turn.id))
}

fn newest_turns(
    session: &str,
    before: Option<&str>,
    (context, client): (&Context, &Client),
) -> Result<TurnList, Failure> {
    Ok(printable(&get_patiently(
        &turns_path(session, before),
        context,
        client,
    )?)?)
}

/// Where the turns before one are, or the newest ones.
pub(in crate::commands) fn turns_path(session: &str, before: Option<&str>) -> String {
    let place = before.map_or_else(String::new, |before| format!("&before={before}"));
    path(session, &format!("/turns?limit={PAGE_TURNS}{place}"))
}

/// Whether a turn did not only wait.
fn has_begun((session, turn): (&str, &str), (context, client): (&Context, &Client)) -> Result<bool, Failure> {
    let turn: Turn = printable(&get_patiently(
        &super::turn_path(session, turn, ""),
        context,
        client,
    )?)?;
    Ok(turn.started_at.is_some())
}

/// The turns that have begun after another one, in their order.
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
    (session, turn): (&str, &str),
    beginning: Beginning,
    (context, format, client): (&Context, Format, &Client),
) -> Result<Ended, Failure> {
    let mut teller = Teller::new(format, session, (Prompts::Told, beginning), context);
    // Whoever only watches takes nothing with him when he goes.
    let when = WhenInterrupted::EndTheProcess;
    let ended = follow((context, client), (session, turn), beginning, when, &mut teller)?;
    teller.close();
    Ok(ended)
}

/// Returns when a turn has begun that is newer. The state decides: whoever wakes looks again.
fn until_another_begins(
    id: &str,
    newest: Option<&str>,
    (context, client): (&Context, &Client),
) -> Result<(), Failure> {
    let mut silent_since: Option<Instant> = None;
    // A moment that comes between the look and the wait is in what is replayed after this place.
    let mut place = 0_u64;
    loop {
        let now = session(id, context, client)?;
        if now.last_turn.as_deref() != newest {
            return Ok(());
        }
        let mut reader = EventReader::default();
        let headers = [
            (ACCEPT, "text/event-stream".to_owned()),
            (HeaderName::from_static("last-event-id"), place.to_string()),
        ];
        let mut woken = false;
        let ended = client.download_until(
            &path(id, "/events"),
            &headers,
            SILENCE,
            &mut Interrupts::default(),
            |piece| {
                silent_since = None;
                for event in reader.read(piece) {
                    if let Some(number) = event.id.as_deref().and_then(|id| id.parse().ok()) {
                        place = number;
                        woken = true;
                    }
                }
                // The only way to leave a stream that goes on.
                if woken {
                    Err(std::io::ErrorKind::Interrupted.into())
                } else {
                    Ok(())
                }
            },
        );
        match ended {
            Err(ClientError::Output { .. }) if woken => continue,
            Ok(_) => {}
            Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => {}
            Err(
                error @ (ClientError::Unreachable { .. }
                | ClientError::Broken { .. }
                | ClientError::Timeout { .. }),
            ) => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= PATIENCE {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        client.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
    }
}
