//! Sessions, one a line.

use protocol::{Session, SessionList, TurnState};
use serde_json::{Value, json};

use super::pick::PAGE_SESSIONS;
use super::words::{agent, state};
use super::{SESSIONS, get};
use crate::cli::SessionListArguments;
use crate::client::{Client, path_segment};
use crate::commands::job::age;
use crate::commands::lsp::paths;
use crate::commands::lsp::printable::{cut, printable};
use crate::commands::machine::with_machines;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::units::format_duration;

/// How much of a title is shown.
const TITLE_CHARACTERS: usize = 50;

pub(super) fn list(
    arguments: &SessionListArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let mut query = String::new();
    if let Some(directory) = &arguments.directory {
        let directory = paths::directory(directory)?;
        query.push_str(&format!("&directory={}", path_segment(&directory)));
    }
    if let Some(state) = arguments.state {
        query.push_str(&format!("&state={}", state.name()));
    }
    let mut sessions = all(&query, context, client)?;
    if arguments.all {
        sessions.extend(all(&format!("{query}&state=archived"), context, client)?);
    }
    let value = json!({ "sessions": sessions });
    let shown: SessionList = printable(&value)?;
    Ok(Report::success(value, rows(context.palette, &shown.sessions)))
}

/// All pages, as one list.
fn all(query: &str, context: &Context, client: &Client) -> Result<Vec<Value>, Failure> {
    let mut sessions: Vec<Value> = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let place = before.map_or_else(String::new, |before| format!("&before={before}"));
        let path = format!("{SESSIONS}?limit={PAGE_SESSIONS}{query}{place}");
        let mut answer = get(&path, context, client)?;
        if let Value::Array(page) = answer["sessions"].take() {
            sessions.extend(page);
        }
        before = answer["next"].as_str().map(str::to_owned);
        if before.is_none() {
            return Ok(sessions);
        }
    }
}

fn rows(palette: Palette, sessions: &[Session]) -> String {
    if sessions.is_empty() {
        return "No sessions found. `tidelock run PROMPT` opens one, and --all includes archived sessions.\n"
            .to_owned();
    }
    let heading = [
        "ID", "STATE", "CHANGED", "TITLE", "AGENT", "TURNS", "WAITING", "LAST",
    ];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    rows.extend(sessions.iter().map(|session| {
        let last = session.last_state.map_or("-", TurnState::name);
        vec![
            Cell::new(&session.id),
            state(session.state),
            Cell::new(age(&session.changed_at).map_or_else(|| "-".to_owned(), format_duration)),
            Cell::new(cut(&session.title, TITLE_CHARACTERS)),
            Cell::new(agent(session)),
            Cell::new(session.prompts.to_string()),
            Cell::new(session.queue.len().to_string()),
            Cell::new(last),
        ]
    }));
    let machines: Vec<_> = sessions.iter().map(|session| session.machine.as_ref()).collect();
    with_machines(&mut rows, 2, &machines, "-");
    table(palette, &rows)
}

#[cfg(test)]
mod tests {
    use protocol::SessionState;

    use super::super::samples::{TURN, asking, session};
    use super::*;

    #[test]
    fn a_list_tells_what_each_is_doing() {
        let untouched = Session {
            title: String::new(),
            last_state: None,
            prompts: 0,
            ..session()
        };
        let waiting = Session {
            state: SessionState::Running,
            queue: vec![TURN.to_owned()],
            ..session()
        };
        let asks = asking(session(), &["permission_1"]);
        let sessions = [session(), untouched, waiting, asks];
        insta::assert_snapshot!(rows(Palette::Plain, &sessions));
        insta::assert_snapshot!(rows(Palette::Plain, &[]));
    }
}
