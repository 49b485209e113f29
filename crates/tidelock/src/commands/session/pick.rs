//! Which session, turn or question is meant: an id says it, so does a part of it that no other has, and `@` is the newest
//! session of the directory that the user is in.

use std::path::Path;

use protocol::{Session, SessionList, TurnList};

use super::{SESSIONS, get, path};
use crate::client::Client;
use crate::commands::ids::{PERMISSION, SESSION, TURN};
use crate::commands::lsp::paths::current_directory;
use crate::commands::lsp::printable::{as_it_is, printable};
use crate::context::Context;
use crate::error::{Exit, Failure};

/// The name of the newest session of the directory that the user is in.
const NEWEST: &str = "@";
/// How many sessions are asked for at a time.
pub(super) const PAGE_SESSIONS: usize = 100;
/// Among how many of the newest sessions a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 50;
/// How many turns are asked for at a time.
const PAGE_TURNS: usize = 100;

/// The id of the session that is meant.
pub(in crate::commands) fn find(wanted: &str, context: &Context, client: &Client) -> Result<String, Failure> {
    if wanted == NEWEST {
        let here = current_directory()?;
        let newest = newest_here(&here, |_| true, context, client)?;
        return newest.map(|session| session.id).ok_or_else(|| {
            let message = format!("there is no session for {}", here.display());
            Failure::new(Exit::Refused, "session_not_found", message)
                .advise("open one with `tidelock run PROMPT`")
        });
    }
    if SESSION.is_whole(wanted) {
        return Ok(wanted.to_owned());
    }
    let part = SESSION.part(wanted)?;
    let mut found = Vec::new();
    // Those that were put away are listed apart.
    for query in ["", "&state=archived"] {
        pages(query, context, client, |session| {
            if part.is_of(&session.id) {
                found.push(session.id);
            }
            true
        })?;
    }
    part.only(found)
}

/// The newest session whose directory the user is in, of those that are wanted.
pub(super) fn newest_here(
    here: &Path,
    is_wanted: impl Fn(&Session) -> bool,
    context: &Context,
    client: &Client,
) -> Result<Option<Session>, Failure> {
    let mut newest = None;
    pages("", context, client, |session| {
        if here.starts_with(&session.directory) && is_wanted(&session) {
            newest = Some(session);
        }
        newest.is_none()
    })?;
    Ok(newest)
}

/// Goes through sessions, newest first, as long as more are wanted.
fn pages(
    query: &str,
    context: &Context,
    client: &Client,
    mut take: impl FnMut(Session) -> bool,
) -> Result<(), Failure> {
    let mut before: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let place = before.map_or_else(String::new, |before| format!("&before={before}"));
        let path = format!("{SESSIONS}?limit={PAGE_SESSIONS}{query}{place}");
        let page: SessionList = as_it_is(&get(&path, context, client)?)?;
        if !page.sessions.into_iter().all(&mut take) {
            return Ok(());
        }
        before = page.next;
        if before.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// The id of the turn of a session that is meant, among those that wait and those that have begun.
pub(super) fn find_turn(
    wanted: &str,
    session: &str,
    context: &Context,
    client: &Client,
) -> Result<String, Failure> {
    if TURN.is_whole(wanted) {
        return Ok(wanted.to_owned());
    }
    let part = TURN.part(wanted)?;
    let waiting: TurnList = printable(&get(&path(session, "/queue"), context, client)?)?;
    let mut turns = waiting.turns;
    let mut before: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let place = before.map_or_else(String::new, |before| format!("&before={before}"));
        let path = path(session, &format!("/turns?limit={PAGE_TURNS}{place}"));
        let page: TurnList = printable(&get(&path, context, client)?)?;
        turns.extend(page.turns);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let ids = turns.into_iter().map(|turn| turn.id);
    let mut found: Vec<String> = ids.filter(|id| part.is_of(id)).collect();
    // One that begins between the two looks is in both.
    found.sort();
    found.dedup();
    part.only(found)
}

/// The question that is meant, of those that are open; the only one if none is named.
pub(super) fn find_permission(wanted: Option<&str>, session: &Session) -> Result<String, Failure> {
    let open = session.active.iter().flat_map(|active| &active.asking);
    let ids = open.map(|question| question.permission.clone());
    match wanted {
        // It may have been answered already, which the daemon tells.
        Some(wanted) if PERMISSION.is_whole(wanted) => Ok(wanted.to_owned()),
        Some(wanted) => {
            let part = PERMISSION.part(wanted)?;
            let found = ids.filter(|id| part.is_of(id)).collect();
            part.only(found)
        }
        None => {
            let mut ids: Vec<String> = ids.collect();
            match ids.len() {
                1 => Ok(ids.remove(0)),
                0 => {
                    let message = format!("{} has no open question", session.id);
                    Err(
                        Failure::new(Exit::Refused, "permission_not_found", message).advise(
                            "someone else may have answered, or it timed out; see `tidelock session show`",
                        ),
                    )
                }
                count => {
                    let message = format!("{} has {count} open questions: {}", session.id, ids.join(", "));
                    Err(Failure::new(Exit::Usage, "permission_ambiguous", message)
                        .advise("name the one to answer; `tidelock session show` shows them"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{asking, session};
    use super::*;

    #[test]
    fn a_question_needs_a_name_only_if_there_are_several() {
        let one = "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
        let two = "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TY";
        for (open, wanted, expected) in [
            (&[][..], None, Err("permission_not_found")),
            (&[one][..], None, Ok(one)),
            (&[one, two][..], None, Err("permission_ambiguous")),
            (&[one, two][..], Some("S1TY"), Ok(two)),
            (&[one, two][..], Some("01JC"), Err("permission_ambiguous")),
            (&[one][..], Some("S1TY"), Err("permission_not_found")),
            // The daemon knows what was answered.
            (&[][..], Some(two), Ok(two)),
        ] {
            let found = find_permission(wanted, &asking(session(), open));
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(found, expected, "{wanted:?} of {open:?}");
        }
    }
}
