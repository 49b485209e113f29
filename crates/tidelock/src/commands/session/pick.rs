//! Which session, turn or question is meant: an id says it, so does a part of it that no other has, and `@` is the newest
//! session of the directory that the user is in.

use std::path::Path;

use api::{Session, SessionList, TurnList};

use super::{SESSIONS, get, path};
use crate::client::Client;
use crate::commands::lsp::paths::current_directory;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};

/// The name of the newest session of the directory that the user is in.
const NEWEST: &str = "@";
/// How long an id is behind what all of them begin with.
const BODY_LENGTH: usize = 26;
/// How much of an id must be given: less is more likely a slip than a session.
const LEAST: usize = 4;
/// How many sessions are asked for at a time.
pub(super) const PAGE_SESSIONS: usize = 100;
/// Among how many of the newest sessions a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 50;
/// How many turns are asked for at a time.
const PAGE_TURNS: usize = 100;
/// How many of several that are meant are named.
const NAMED: usize = 5;

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
    if is_whole(wanted, Kind::Session) {
        return Ok(wanted.to_owned());
    }
    long_enough(wanted, Kind::Session)?;
    let mut found = Vec::new();
    // Those that were put away are listed apart.
    for query in ["", "&state=archived"] {
        pages(query, context, client, |session| {
            if is_meant(&session.id, wanted) {
                found.push(session.id);
            }
            true
        })?;
    }
    only(found, wanted, Kind::Session)
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
        let page: SessionList = printable(&get(&path, context, client)?)?;
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
    if is_whole(wanted, Kind::Turn) {
        return Ok(wanted.to_owned());
    }
    long_enough(wanted, Kind::Turn)?;
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
    let mut found: Vec<String> = ids.filter(|id| is_meant(id, wanted)).collect();
    // One that begins between the two looks is in both.
    found.sort();
    found.dedup();
    only(found, wanted, Kind::Turn)
}

/// The question that is meant, of those that are open; the only one if none is named.
pub(super) fn find_permission(wanted: Option<&str>, session: &Session) -> Result<String, Failure> {
    let open = session.active.iter().flat_map(|active| &active.asking);
    let ids = open.map(|question| question.permission.clone());
    match wanted {
        // It may have been answered already, which the daemon tells.
        Some(wanted) if is_whole(wanted, Kind::Permission) => Ok(wanted.to_owned()),
        Some(wanted) => {
            long_enough(wanted, Kind::Permission)?;
            let found = ids.filter(|id| is_meant(id, wanted)).collect();
            only(found, wanted, Kind::Permission)
        }
        None => {
            let mut ids: Vec<String> = ids.collect();
            match ids.len() {
                1 => Ok(ids.remove(0)),
                0 => {
                    let message = format!("{} asks nothing", session.id);
                    Err(Failure::new(Exit::Refused, "permission_not_found", message)
                        .advise("somebody was faster, or it took too long; `tidelock session show` tells"))
                }
                count => {
                    let message = format!("{} asks {count} things: {}", session.id, ids.join(", "));
                    Err(Failure::new(Exit::Usage, "permission_ambiguous", message)
                        .advise("name the one that you answer; `tidelock session show` tells what they are"))
                }
            }
        }
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Session,
    Turn,
    Permission,
}

impl Kind {
    /// What the ids begin with.
    fn prefix(self) -> &'static str {
        match self {
            Kind::Session => "session_",
            Kind::Turn => "turn_",
            Kind::Permission => "permission_",
        }
    }

    /// The word, the code for nothing, the code for several, and what to do.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Kind::Session => (
                "session",
                "session_not_found",
                "session_ambiguous",
                "`tidelock session list --all` shows the sessions",
            ),
            Kind::Turn => (
                "turn",
                "turn_not_found",
                "turn_ambiguous",
                "`tidelock session show` shows the turns of a session",
            ),
            Kind::Permission => (
                "open question",
                "permission_not_found",
                "permission_ambiguous",
                "`tidelock session show` shows what is asked",
            ),
        }
    }
}

fn is_whole(wanted: &str, kind: Kind) -> bool {
    wanted.starts_with(kind.prefix()) && wanted.len() == kind.prefix().len() + BODY_LENGTH
}

fn long_enough(wanted: &str, kind: Kind) -> Result<(), Failure> {
    let body = wanted.strip_prefix(kind.prefix()).unwrap_or(wanted);
    if body.chars().count() >= LEAST {
        return Ok(());
    }
    let shown = wanted.escape_debug();
    let message = format!("`{shown}` is too short; {LEAST} letters of an id are needed");
    Err(Failure::new(Exit::Usage, "usage", message).advise("the last letters of an id differ the most"))
}

/// Whether a text is the beginning or the end of an id, with or without what all of them begin with.
fn is_meant(id: &str, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_uppercase();
    let id = id.to_ascii_uppercase();
    let body = id.split_once('_').map_or(id.as_str(), |(_, body)| body);
    id.starts_with(&wanted) || body.starts_with(&wanted) || body.ends_with(&wanted)
}

fn only(mut found: Vec<String>, wanted: &str, kind: Kind) -> Result<String, Failure> {
    let shown = wanted.escape_debug();
    let (word, not_found, ambiguous, advice) = kind.words();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(
            Exit::Refused,
            not_found,
            format!("no {word} has an id that begins or ends with `{shown}`"),
        )
        .advise(advice)),
        count => {
            let named: Vec<String> = found.into_iter().take(NAMED).collect();
            let more = if count > NAMED { ", ..." } else { "" };
            let named = named.join(", ");
            let message =
                format!("{count} {word}s have an id that begins or ends with `{shown}`: {named}{more}");
            Err(Failure::new(Exit::Refused, ambiguous, message)
                .advise("write more of the id; the ends differ the most"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{asking, session};
    use super::*;

    #[test]
    fn a_part_of_an_id_is_enough_if_it_is_clear_and_long_enough() {
        let ids = [
            "session_01JCZ8T6V8Y3N5K2M4Q7R9S1TX",
            "session_01JCZ8T6V8Y3N5K2M4Q7R9ATTX",
            "session_01JD00000000000000000S1TY",
        ];
        for (wanted, expected) in [
            ("S1TX", Ok(ids[0])),
            ("s1tx", Ok(ids[0])),
            ("session_01JD", Ok(ids[2])),
            ("01JC", Err("session_ambiguous")),
            ("8T6V", Err("session_not_found")),
            ("TTX", Err("usage")),
            ("session_01J", Err("usage")),
        ] {
            let found = long_enough(wanted, Kind::Session).and_then(|()| {
                let found = ids.iter().filter(|id| is_meant(id, wanted));
                only(found.map(|id| (*id).to_owned()).collect(), wanted, Kind::Session)
            });
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(found, expected, "{wanted}");
        }
    }

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
