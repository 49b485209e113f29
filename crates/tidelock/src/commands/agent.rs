//! `tidelock agent`: the available agents.

use protocol::{Agent, AgentKind, AgentList};

use super::session::agent_state;
use crate::client::Client;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::printable::{Answer, cut};

const TEXT_CHARACTERS: usize = 120;

pub(super) fn list(client: &Client) -> Result<Report, Failure> {
    let list: Answer<AgentList> = client.fetch("/v1/agents")?;
    Ok(Report::shown(rows(client.palette(), &list.agents), list))
}

fn rows(palette: Palette, agents: &[Agent]) -> String {
    let mut rows = Vec::new();
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
    list_of(palette, &["NAME", "STATE", "KIND", ""], rows, "")
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
