//! `tidelock run`: an agent works in a sandbox, is watched, and ends with a diff to review.
//!
//! Standard output is what the agent says. Everything else goes to standard error. Nothing is lost when this process ends
//! half-way: the turn goes on, and `tidelock session attach` finds it again.

use std::io;

use api::{AgentKind, AgentList, IfBusy, OpenSession, Session};
use serde_json::json;

use super::lsp::paths;
use super::lsp::printable::{one_line, printable};
use super::plan;
use super::session::converse::{accept, converse};
use super::session::prompt::Prepared;
use super::session::{SESSIONS, ask, find, get, path};
use crate::cli::TalkArguments;
use crate::client::Client;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{self, Format, Report, json_line};
use crate::start::Repeat;

pub(super) fn run(
    arguments: &TalkArguments,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    // What is wrong with the arguments is said before a daemon is started for them.
    let prepared = Prepared::new(&arguments.prompt)?;
    let surroundings = (context, format, client);
    if let Some(wanted) = &arguments.session {
        let session = find(wanted, context, client)?;
        let request = prepared.further(IfBusy::Queue);
        let accepted = accept(&session, &request, context, client)?;
        return converse(&accepted, &arguments.prompt, surroundings);
    }
    let session = open(arguments, &prepared, surroundings)?;
    let accepted = accept(&session.id, &prepared.first(), context, client).inspect_err(|_| {
        // A session without a prompt is no use to anybody. If it cannot be removed, it is at least empty.
        drop(client.delete(&path(&session.id, "")));
    })?;
    converse(&accepted, &arguments.prompt, surroundings)
}

/// A session for the directory that the user is in.
fn open(
    arguments: &TalkArguments,
    prepared: &Prepared,
    (context, format, client): (&Context, Format, &Client),
) -> Result<Session, Failure> {
    let directory = paths::directory(&paths::current_directory()?)?;
    let plan = match &arguments.plan {
        Some(wanted) => Some(plan::find(wanted, context, client)?),
        None => None,
    };
    let agent = prepared.agent_of_session();
    if agent.is_none() && format == Format::Human {
        say_who_answers(context, client)?;
    }
    let request = OpenSession {
        directory,
        title: arguments.title.clone(),
        agent,
        rules: Vec::new(),
        plan,
    };
    let answer = ask(context, client, Repeat::Harmful, |client| {
        client.post(SESSIONS, Some(&request))
    })?;
    if format == Format::Json {
        // Programs can find it again whatever happens to this process.
        drop(output::write(
            io::stdout(),
            &json_line(&json!({ "opened": answer })),
        ));
    }
    Ok(printable(&answer)?)
}

/// Whoever has configured no model shall not take a rehearsal for one.
fn say_who_answers(context: &Context, client: &Client) -> Result<(), Failure> {
    let list: AgentList = printable(&get("/v1/agents", context, client)?)?;
    if let Some(note) = rehearsal_note(&list) {
        drop(output::write(io::stderr(), &format!("note: {note}\n")));
    }
    Ok(())
}

fn rehearsal_note(list: &AgentList) -> Option<String> {
    let answers = list.agents.iter().find(|agent| agent.default)?;
    if answers.kind != AgentKind::Rehearsal {
        return None;
    }
    let model = list.agents.iter().find(|agent| agent.kind == AgentKind::Model);
    let missing = model.and_then(|model| model.missing.as_deref()).map(one_line);
    let missing = missing.map_or_else(String::new, |missing| format!(" ({missing})"));
    Some(format!(
        "no model is configured{missing}, so the built-in agent `{}` answers; see `tidelock agent list`",
        answers.id
    ))
}

#[cfg(test)]
mod tests {
    use api::Agent;

    use super::*;

    #[test]
    fn a_rehearsal_is_never_taken_for_a_model() {
        let agent = |id: &str, kind, default| Agent {
            id: id.to_owned(),
            state: "ready".to_owned(),
            kind,
            description: String::new(),
            missing: (kind == AgentKind::Model).then(|| "no key".to_owned()),
            default,
        };
        let note = |model_is_default| {
            rehearsal_note(&AgentList {
                agents: vec![
                    agent("model", AgentKind::Model, model_is_default),
                    agent("rehearsal", AgentKind::Rehearsal, !model_is_default),
                ],
            })
        };
        assert_eq!(note(true), None);
        assert_eq!(
            note(false).as_deref(),
            Some(
                "no model is configured (no key), so the built-in agent `rehearsal` answers; see `tidelock agent list`"
            )
        );
    }
}
