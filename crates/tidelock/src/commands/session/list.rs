//! Lists sessions, one per line.

use protocol::{Session, SessionList, TurnState};
use serde_json::json;

use super::SESSIONS;
use super::labels::{agent, state};
use crate::cli::SessionListArguments;
use crate::client::{Client, path_segment};
use crate::commands::job::age;
use crate::commands::machine::with_machines;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, list as list_of};
use crate::paths;
use crate::printable::{cut, printable};
use crate::units::format_duration;

const TITLE_CHARACTERS: usize = 50;

pub(super) fn list(arguments: &SessionListArguments, client: &Client) -> Result<Report, Failure> {
    let mut path = format!("{SESSIONS}?");
    if let Some(directory) = &arguments.directory {
        path.push_str(&format!(
            "&directory={}",
            path_segment(&paths::directory(directory)?)
        ));
    }
    if let Some(state) = arguments.state {
        path.push_str(&format!("&state={}", state.name()));
    }
    let mut sessions = client.fetch_pages(&path, "sessions", None)?.things;
    if arguments.all {
        let archived = client.fetch_pages(&format!("{path}&state=archived"), "sessions", None)?;
        sessions.extend(archived.things);
    }
    let value = json!({ "sessions": sessions });
    let shown: SessionList = printable(&value)?;
    Ok(Report::success(value, rows(client.palette(), &shown.sessions)))
}

fn rows(palette: Palette, sessions: &[Session]) -> String {
    let mut heading = vec![
        "ID", "STATE", "CHANGED", "TITLE", "AGENT", "TURNS", "WAITING", "LAST",
    ];
    let row = |session: &Session| {
        vec![
            Cell::new(&session.id),
            state(session.state),
            Cell::or_dash(age(&session.changed_at).map(format_duration)),
            Cell::new(cut(&session.title, TITLE_CHARACTERS)),
            Cell::new(agent(session)),
            Cell::new(session.prompts.to_string()),
            Cell::new(session.queue.len().to_string()),
            Cell::new(session.last_state.map_or("-", TurnState::name)),
        ]
    };
    let mut rows: Vec<_> = sessions.iter().map(row).collect();
    let machines: Vec<_> = sessions.iter().map(|session| session.machine.as_ref()).collect();
    with_machines(&mut heading, &mut rows, &machines, "-");
    list_of(
        palette,
        &heading,
        rows,
        "No sessions found. `tidelock run PROMPT` opens one, and --all includes archived sessions.",
    )
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
