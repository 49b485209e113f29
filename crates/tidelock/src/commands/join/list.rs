//! All clients: which are installed, and which are joined.

use serde_json::{Value, json};

use super::clients::{CLIENTS, Client};
use super::surroundings::Surroundings;
use super::{look, shown};
use crate::cli::JoinScope;
use crate::error::chain;
use crate::output::{Cell, Palette, Report, Tone, list};

pub(super) fn report(palette: Palette, surroundings: &Surroundings<'_>) -> Report {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for client in CLIENTS {
        let here = surroundings.trace(client);
        let (state, path) = state(client, surroundings);
        let (word, tone) = match state {
            State::Joined => ("yes", Tone::Good),
            State::NotJoined => ("no", Tone::Plain),
            State::Unclear => ("unclear", Tone::Warning),
        };
        rows.push(vec![
            Cell::new(client.word),
            Cell::toned(client.title, Tone::Quiet),
            Cell::or_dash(here.as_deref().map(shown)),
            Cell::toned(word, tone),
            Cell::or_dash(path.clone()),
        ]);
        values.push(value(client, state, here.as_deref().map(shown), path));
    }
    let text = format!(
        "{}\n`tidelock join CLIENT` shows what to add, and `tidelock join CLIENT --write` adds it.\n",
        list(palette, &["CLIENT", "", "HERE", "JOINED", "FILE"], rows, "")
    );
    Report::success(json!({ "clients": values }), text)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Joined,
    NotJoined,
    Unclear,
}

/// Whether we have an entry, and in which file; otherwise where it would be, or why that is unknown.
fn state(client: &Client, surroundings: &Surroundings<'_>) -> (State, Option<String>) {
    let mut unclear = None;
    for scope in [JoinScope::Project, JoinScope::User] {
        match look(client, scope, surroundings) {
            Ok(Some((path, _))) => return (State::Joined, Some(shown(&path))),
            Ok(None) => {}
            Err(error) => unclear = Some(chain(&error)),
        }
    }
    if let Some(reason) = unclear {
        return (State::Unclear, Some(reason));
    }
    let path = surroundings.file(client, JoinScope::User).ok().flatten();
    (State::NotJoined, path.as_deref().map(shown))
}

fn value(client: &Client, state: State, here: Option<String>, path: Option<String>) -> Value {
    let state = match state {
        State::Joined => "joined",
        State::NotJoined => "not_joined",
        State::Unclear => "unclear",
    };
    json!({
        "id": client.word,
        "state": state,
        "title": client.title,
        "here": here,
        "path": path,
    })
}
