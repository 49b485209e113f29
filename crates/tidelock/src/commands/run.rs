//! `tidelock run`: runs an agent in a sandbox, shows its work, and ends with a diff to review.
//!
//! Standard output carries what the agent says. Everything else goes to standard error. Nothing is lost if this
//! process ends early: the turn keeps running, and `tidelock session attach` finds it again.

use std::io;

use protocol::{Agent, AgentKind, AgentList, IfBusy, OpenSession, Session};
use serde_json::json;

use super::session::converse::{accept, converse};
use super::session::prompt::Prepared;
use super::session::{SESSIONS, path};
use crate::cli::TalkArguments;
use crate::client::Client;
use crate::commands::ids::{PLAN, SESSION};
use crate::error::Failure;
use crate::output::{self, Format, Report, json_line};
use crate::paths;
use crate::printable::{one_line, printable};
use crate::start::Repeat;

pub(super) fn run(arguments: &TalkArguments, client: &Client) -> Result<Report, Failure> {
    // Report invalid arguments before starting a daemon.
    let prepared = Prepared::new(&arguments.prompt)?;
    if let Some(wanted) = &arguments.session {
        let session = SESSION.find(wanted, client)?;
        let request = prepared.further(IfBusy::Queue);
        let accepted = accept(&session, &request, client)?;
        return converse(&accepted, &arguments.prompt, client);
    }
    let session = open(arguments, &prepared, client)?;
    let accepted = accept(&session.id, &prepared.first(), client).inspect_err(|_| {
        // A session without a prompt is useless. If it can't be removed, it is at least empty.
        drop(client.delete(&path(&session.id, "")));
    })?;
    converse(&accepted, &arguments.prompt, client)
}

fn open(arguments: &TalkArguments, prepared: &Prepared, client: &Client) -> Result<Session, Failure> {
    let directory = paths::directory(&paths::current_directory()?)?;
    let plan = arguments
        .plan
        .as_ref()
        .map(|wanted| PLAN.find(wanted, client))
        .transpose()?;
    let agent = prepared.agent_of_session();
    if agent.is_none() && client.format() == Format::Human {
        say_who_answers(client)?;
    }
    let request = OpenSession {
        directory,
        title: arguments.title.clone(),
        agent,
        rules: Vec::new(),
        plan,
    };
    let answer = client.ask(Repeat::Harmful, |client| client.post(SESSIONS, Some(&request)))?;
    if client.format() == Format::Json {
        // So that programs can find it again whatever happens to this process.
        drop(output::write(
            io::stdout(),
            &json_line(&json!({ "opened": answer })),
        ));
    }
    Ok(printable(&answer)?)
}

/// The user chose no agent, so this says which one answers, and which others could.
fn say_who_answers(client: &Client) -> Result<(), Failure> {
    let list: AgentList = printable(&client.fetch("/v1/agents")?)?;
    let notes: String = who_answers(&list)
        .iter()
        .map(|note| format!("note: {note}\n"))
        .collect();
    drop(output::write(io::stderr(), &notes));
    Ok(())
}

fn who_answers(list: &AgentList) -> Vec<String> {
    let Some(answers) = list.agents.iter().find(|agent| agent.default) else {
        return Vec::new();
    };
    if answers.kind != AgentKind::Rehearsal {
        return vec![format!(
            "`{}` answers; choose another agent with --agent (see `tidelock agent list`)",
            answers.id
        )];
    }
    let model = list.agents.iter().find(|agent| agent.kind == AgentKind::Model);
    let missing = model.and_then(|model| model.missing.as_deref()).map(one_line);
    let missing = missing.map_or_else(String::new, |missing| format!(" ({missing})"));
    let mut notes = vec![format!(
        "no model is configured{missing}, so the built-in agent `{}` answers: it only plays a script",
        answers.id
    )];
    // An installed agent is most likely the one the user meant.
    let programs = list.agents.iter().filter(|agent| agent.kind == AgentKind::Acp);
    let (ready, rest): (Vec<&Agent>, Vec<&Agent>) = programs.partition(|agent| agent.missing.is_none());
    if let Some(first) = ready.first() {
        let names: Vec<String> = ready.iter().map(|agent| format!("`{}`", agent.id)).collect();
        notes.push(format!(
            "found on this machine: {}; use one with: tidelock run --agent {} PROMPT",
            names.join(", "),
            first.id
        ));
    }
    let missing = rest.iter().filter_map(|agent| {
        let missing = one_line(agent.missing.as_deref()?);
        Some(format!("{}: {missing}", agent.id))
    });
    notes.extend(missing);
    notes.push(
        "to change the default agent, set `sessions.default_agent`; see `tidelock agent list`".to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_answers_and_who_else_could() {
        let agent = |id: &str, kind, missing: Option<&str>| Agent {
            id: id.to_owned(),
            state: if missing.is_some() { "missing" } else { "ready" }.to_owned(),
            kind,
            description: String::new(),
            missing: missing.map(str::to_owned),
            default: false,
        };
        let notes = |default: &str| {
            let mut agents = vec![
                agent(
                    "claude",
                    AgentKind::Acp,
                    Some("`claude` is installed. Install its ACP adapter: npm install it"),
                ),
                agent(
                    "model",
                    AgentKind::Model,
                    (default != "model").then_some("no key"),
                ),
                agent("opencode", AgentKind::Acp, None),
                agent("qwen", AgentKind::Acp, None),
                agent("rehearsal", AgentKind::Rehearsal, None),
            ];
            for agent in &mut agents {
                agent.default = agent.id == default;
            }
            who_answers(&AgentList { agents })
        };
        assert_eq!(
            notes("model"),
            ["`model` answers; choose another agent with --agent (see `tidelock agent list`)"]
        );
        assert_eq!(
            notes("rehearsal"),
            [
                "no model is configured (no key), so the built-in agent `rehearsal` answers: it only plays a script",
                "found on this machine: `opencode`, `qwen`; use one with: tidelock run --agent opencode PROMPT",
                "claude: `claude` is installed. Install its ACP adapter: npm install it",
                "to change the default agent, set `sessions.default_agent`; see `tidelock agent list`",
            ]
        );
    }
}
