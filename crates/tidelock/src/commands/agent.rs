//! `tidelock agent`: who can be asked.

use protocol::{Agent, AgentKind, AgentList};

use super::lsp::printable::{cut, printable};
use super::session::{agent_state, get};
use crate::client::Client;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};

/// How much of a description is shown.
const TEXT_CHARACTERS: usize = 120;

pub(super) fn list(context: &Context, client: &Client) -> Result<Report, Failure> {
    let answer = get("/v1/agents", context, client)?;
    let list: AgentList = printable(&answer)?;
    Ok(Report::success(answer, rows(context.palette, &list.agents)))
}

fn rows(palette: Palette, agents: &[Agent]) -> String {
    let heading = ["NAME", "STATE", "KIND", ""];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    for agent in agents {
        let kind = match agent.kind {
            AgentKind::Rehearsal => "rehearsal",
            AgentKind::Model => "model",
            AgentKind::Acp => "acp",
        };
        let name = if agent.default {
            format!("{} (default)", agent.id)
        } else {
            agent.id.clone()
        };
        rows.push(vec![
            Cell::new(name),
            agent_state(&agent.state),
            Cell::new(kind),
            Cell::new(cut(&agent.description, TEXT_CHARACTERS)),
        ]);
        if let Some(missing) = &agent.missing {
            let hint = format!("hint: {}", cut(missing, TEXT_CHARACTERS));
            rows.push(vec![
                Cell::new(""),
                Cell::new(""),
                Cell::new(""),
                Cell::toned(hint, Tone::Quiet),
            ]);
        }
    }
    table(palette, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_tells_who_is_ready_and_what_is_missing() {
        let agent = |id: &str, kind, missing: Option<&str>| Agent {
            id: id.to_owned(),
            state: if missing.is_some() { "missing" } else { "ready" }.to_owned(),
            kind,
            description: format!("an agent called {id}"),
            missing: missing.map(str::to_owned),
            default: id == "rehearsal",
        };
        insta::assert_snapshot!(rows(
            Palette::Plain,
            &[
                agent("codex", AgentKind::Acp, None),
                agent("model", AgentKind::Model, Some("set OPENAI_API_KEY")),
                agent("rehearsal", AgentKind::Rehearsal, None),
            ]
        ));
    }
}
