//! Opens, finds, lists and closes sessions.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use protocol::{AgentChoice, AgentList, ArchiveSession, OpenSession, Session, SessionList};
use serde_json::{Value, json};

use super::converse;
use super::open::Open;
use super::refusal::Refused;
use super::schema::{self, Existing, ListSessions, McpServer, OfSession, SetConfigOption, SetUp};
use super::serve::{Done, SESSIONS_LIMIT, Site};
use super::watch::{self, Beginning};
use crate::client::{Client, path_segment};
use crate::commands::session::{SESSIONS, path};
use crate::start::Repeat;

const PAGE_SESSIONS: usize = 50;
const REHEARSAL: &str = "rehearsal";
/// The agent that is used when only a model is given.
const MODEL: &str = "model";
const AGENT_OPTION: &str = "agent";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    Told,
    Known,
}

pub(super) fn new(site: &Arc<Site>, params: Value, client: &Client) -> Done {
    let request: SetUp = schema::read(params)?;
    let directory = directory(&request)?;
    room(site)?;
    let arguments = &site.arguments;
    let name = match (&arguments.agent, &arguments.script, &arguments.model) {
        (Some(name), ..) => Some(name.clone()),
        (None, Some(_), _) => Some(REHEARSAL.to_owned()),
        (None, None, Some(_)) => Some(MODEL.to_owned()),
        (None, None, None) => None,
    };
    let wanted = OpenSession {
        directory,
        agent: name.map(|name| AgentChoice {
            name,
            model: arguments.model.clone(),
            script: None,
        }),
        ..OpenSession::default()
    };
    let session: Session = client.ask(Repeat::Harmful, |client| client.post(SESSIONS, Some(&wanted)))?;
    let open = enter(site, &session, &request.mcp_servers)?;
    begin(site, &open, Beginning::Nothing)?;
    let answer = json!({
        "sessionId": session.id,
        "configOptions": config_options(&session, client)?,
    });
    Ok((answer, Some(open)))
}

pub(super) fn existing(site: &Arc<Site>, params: Value, past: Past, client: &Client) -> Done {
    let request: Existing = schema::read(params)?;
    let wanted = directory(&request.set_up)?;
    let session: Session = client.fetch(&path(&request.session_id, ""))?;
    if as_it_is(&wanted) != as_it_is(&session.directory) {
        return Err(Refused::params(format!(
            "{} works on {}, not on {wanted}",
            session.id, session.directory
        ))
        .advise("open that directory in the editor and load the session there"));
    }
    if let Ok(open) = site.session(&session.id) {
        if !open.turns().is_empty() {
            let message = format!("{} is open here and is still answering a prompt", session.id);
            return Err(Refused::no_request(message));
        }
        forget(site, &open);
    } else {
        room(site)?;
    }
    let open = enter(site, &session, &request.set_up.mcp_servers)?;
    let begun = begin(
        site,
        &open,
        match past {
            Past::Told => Beginning::All,
            Past::Known => Beginning::Now,
        },
    );
    // Replay the history before sending the response.
    if let Err(refused) = begun.and_then(|()| open.wait_for_replay()) {
        forget(site, &open);
        return Err(refused);
    }
    let answer = json!({ "configOptions": config_options(&session, client)? });
    Ok((answer, Some(open)))
}

pub(super) fn list(params: Value, client: &Client) -> Done {
    let request: ListSessions = if params.is_null() {
        ListSessions::default()
    } else {
        schema::read(params)?
    };
    let mut query = format!("?limit={PAGE_SESSIONS}");
    let wanted = match &request.cwd {
        Some(cwd) => {
            let cwd = absolute(cwd)?;
            query.push_str(&format!("&directory={}", path_segment(&cwd)));
            Some(as_it_is(&cwd))
        }
        None => None,
    };
    if let Some(cursor) = &request.cursor {
        query.push_str(&format!("&before={}", path_segment(cursor)));
    }
    let page: SessionList = client.fetch(&format!("{SESSIONS}{query}"))?;
    let sessions = page.sessions.iter().filter(|session| {
        let is_there = wanted
            .as_ref()
            .is_none_or(|wanted| *wanted == as_it_is(&session.directory));
        // An empty session isn't worth resuming, and editors open one on every start.
        is_there && session.prompts > 0
    });
    let sessions: Vec<Value> = sessions
        .map(|session| {
            json!({
                "sessionId": session.id,
                "cwd": session.directory,
                "title": session.title,
                "updatedAt": session.changed_at,
            })
        })
        .collect();
    let mut answer = json!({ "sessions": sessions });
    if let Some(next) = page.next {
        answer["nextCursor"] = json!(next);
    }
    Ok((answer, None))
}

/// Stops what this editor started in a session, and sends no more updates about it.
pub(super) fn close(site: &Arc<Site>, params: Value, client: &Client) -> Done {
    let request: OfSession = schema::read(params)?;
    let open = site.session(&request.session_id)?;
    // Leave turns that others started alone.
    for turn in open.turns() {
        converse::cancel(site, &open, &turn, client);
    }
    forget(site, &open);
    Ok((json!({}), None))
}

/// Archives a session: it no longer shows up in lists. `tidelock session archive --undo` reverts this.
pub(super) fn delete(site: &Arc<Site>, params: Value, client: &Client) -> Done {
    let request: OfSession = schema::read(params)?;
    let wanted = ArchiveSession { archived: true };
    let path = path(&request.session_id, "/archive");
    client.ask(Repeat::Harmless, |client| {
        client.post::<Value>(&path, Some(&wanted))
    })?;
    if let Ok(open) = site.session(&request.session_id) {
        forget(site, &open);
    }
    Ok((json!({}), None))
}

pub(super) fn set_config_option(site: &Arc<Site>, params: Value, client: &Client) -> Done {
    let request: SetConfigOption = schema::read(params)?;
    site.session(&request.session_id)?;
    let (AGENT_OPTION, Some(name)) = (request.config_id.as_str(), request.value.as_str()) else {
        return Err(Refused::params(format!(
            "only the option `{AGENT_OPTION}` can be set, to the name of an agent"
        )));
    };
    let choice = AgentChoice {
        name: name.to_owned(),
        ..AgentChoice::default()
    };
    let path = path(&request.session_id, "/agent");
    let session: Session = client.ask(Repeat::Harmless, |client| client.put(&path, &choice))?;
    let options = config_options(&session, client)?;
    Ok((json!({ "configOptions": options }), None))
}

/// The options of a session: the agents that are ready.
pub(super) fn config_options(session: &Session, client: &Client) -> Result<Value, Refused> {
    let agents: AgentList = client.fetch("/v1/agents")?;
    let current = &session.agent.name;
    let can_be_chosen = |agent: &&protocol::Agent| agent.state == "ready" || agent.id == *current;
    let mut options: Vec<Value> = agents
        .agents
        .iter()
        .filter(can_be_chosen)
        .map(|agent| {
            let description = Some(&agent.description).filter(|text| !text.is_empty());
            json!({ "value": agent.id, "name": agent.id, "description": description })
        })
        .collect();
    if !options.iter().any(|option| option["value"] == json!(current)) {
        options.push(json!({ "value": current, "name": current, "description": "no longer configured" }));
    }
    Ok(json!([{
        "id": AGENT_OPTION,
        "name": "Agent",
        "description": "Who answers in this session",
        "category": "_agent",
        "type": "select",
        "currentValue": current,
        "options": options,
    }]))
}

/// The requested directory, if it is valid.
fn directory(request: &SetUp) -> Result<String, Refused> {
    if !request.additional_directories.is_empty() {
        return Err(Refused::params(
            "a session works on one directory; additional directories aren't supported",
        ));
    }
    absolute(&request.cwd)
}

fn absolute(path: &Path) -> Result<String, Refused> {
    match path.to_str() {
        Some(text) if path.is_absolute() => Ok(text.to_owned()),
        _ => Err(Refused::params("`cwd` must be an absolute path")),
    }
}

fn as_it_is(directory: &str) -> PathBuf {
    let path = PathBuf::from(directory);
    path.canonicalize().unwrap_or(path)
}

fn room(site: &Site) -> Result<(), Refused> {
    let sessions = site.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions.len() < SESSIONS_LIMIT {
        return Ok(());
    }
    Err(Refused::too_many(format!(
        "too many sessions: {SESSIONS_LIMIT} are already open here"
    ))
    .advise("close one; you can load it again later"))
}

fn enter(site: &Site, session: &Session, servers: &[McpServer]) -> Result<Arc<Open>, Refused> {
    let open = Arc::new(Open::new(&session.id, Path::new(&session.directory)));
    if !servers.is_empty() {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        // They are for the agent, and each agent of Tidelock brings its own.
        open.notice(&format!(
            "Note: the editor's MCP servers ({}) aren't passed on. Tidelock's agents use the ones in their own \
             configuration.\n\n",
            names.join(", ")
        ));
    }
    let mut sessions = site.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions.contains_key(&session.id) {
        return Err(Refused::no_request(format!(
            "{} is already being opened",
            session.id
        )));
    }
    sessions.insert(session.id.clone(), Arc::clone(&open));
    Ok(open)
}

fn begin(site: &Arc<Site>, open: &Arc<Open>, beginning: Beginning) -> Result<(), Refused> {
    watch::start(site, open, beginning).map_err(|error| {
        forget(site, open);
        Refused::too_many(format!("can't start a thread: {error}"))
    })
}

/// Closes a session here. The daemon's session is unchanged.
pub(super) fn forget(site: &Site, open: &Arc<Open>) {
    open.close();
    let mut sessions = site.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions
        .get(&open.id)
        .is_some_and(|known| Arc::ptr_eq(known, open))
    {
        sessions.remove(&open.id);
    }
    drop(sessions);
    // The editor may be gone.
    drop(site.questions.withdraw_all(&site.outbox, &open.id));
}
