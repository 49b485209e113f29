//! The available agents, as the daemon knows them. Without a daemon there is nothing to report.

use protocol::{Agent, AgentList};
use serde_json::Value;

use super::Check;
use crate::client::{Client, ClientError};
use crate::error::chain;
use crate::printable::{one_line, printable};

const ID: &str = "agents";

pub(super) fn check(client: &Client) -> Vec<Check> {
    let list = client
        .get::<Value>("/v1/agents")
        .and_then(|answer| printable::<AgentList>(&answer));
    match list {
        Ok(list) => vec![judge(&list.agents)],
        // Other checks report an unreachable daemon, and one of another version.
        Err(ClientError::Unreachable { .. }) => Vec::new(),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Vec::new(),
        Err(error) => vec![Check::warning(ID, chain(&error), "see the daemon's log")],
    }
}

/// An agent that lacks something is only worth a warning if it is the default one.
fn judge(agents: &[Agent]) -> Check {
    let is_ready = |agent: &&Agent| agent.state == "ready";
    let names = |agents: Vec<&Agent>| -> String {
        let names: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
        names.join(", ")
    };
    let ready = names(agents.iter().filter(is_ready).collect());
    let missing: Vec<String> = agents
        .iter()
        .filter_map(|agent| Some(format!("{}: {}", agent.id, one_line(agent.missing.as_ref()?))))
        .collect();
    let Some(default) = agents.iter().find(|agent| agent.default) else {
        return Check::warning(
            ID,
            format!("ready: {ready}; no default agent"),
            "choose one with --agent",
        );
    };
    let mut detail = format!("default: `{}`; ready: {ready}", default.id);
    if !missing.is_empty() {
        detail.push_str(&format!("; not ready: {}", missing.join("; ")));
    }
    if is_ready(&default) {
        Check::ok(ID, detail)
    } else {
        Check::warning(ID, detail, "see `tidelock agent list`")
    }
}

#[cfg(test)]
mod tests {
    use protocol::AgentKind;

    use super::*;

    #[test]
    fn the_one_that_is_asked_should_be_ready() {
        let agent = |id: &str, missing: Option<&str>, default| Agent {
            id: id.to_owned(),
            state: if missing.is_some() { "missing" } else { "ready" }.to_owned(),
            kind: AgentKind::Acp,
            description: String::new(),
            missing: missing.map(str::to_owned),
            default,
        };
        for (agents, expected) in [
            (
                vec![agent("a", None, true), agent("b", Some("no key"), false)],
                Check::ok("agents", "default: `a`; ready: a; not ready: b: no key"),
            ),
            (
                vec![agent("a", None, false), agent("b", Some("no key"), true)],
                Check::warning(
                    "agents",
                    "default: `b`; ready: a; not ready: b: no key",
                    "see `tidelock agent list`",
                ),
            ),
        ] {
            assert_eq!(judge(&agents), expected);
        }
    }
}
