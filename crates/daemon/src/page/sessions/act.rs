//! What the forms of a session do.

use std::path::PathBuf;
use std::sync::Arc;

use ::sessions::{Actor, NewSession, NewTurn, Prompt, RunOn, SessionError};
use axum::extract::State;
use axum::response::Redirect;
use maud::html;
use protocol::{AgentChoice, EditQueued, IfBusy, PermissionAnswer, SessionId};
use serde::Deserialize;

use super::state::path;
use crate::app::App;
use crate::http::Problem;
use crate::page::parts::form::{Notice, OwnForm, done};
use crate::sessions::edit_queued;

/// Who acts, as recorded in the session.
const BY: &str = "the page";

#[derive(Debug, Deserialize)]
pub(crate) struct StartForm {
    directory: String,
    agent: String,
    prompt: String,
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<StartForm>,
) -> Redirect {
    match begin(&app, fields).await {
        Ok(session) => Redirect::to(&path(&session.to_string())),
        Err(error) => {
            let notice = refused(error);
            done(&app, &visitor, notice, "/sessions")
        }
    }
}

async fn begin(app: &App, form: StartForm) -> Result<SessionId, SessionError> {
    let session = app
        .sessions
        .create(NewSession {
            directory: PathBuf::from(form.directory.trim()),
            title: String::new(),
            agent: AgentChoice {
                name: form.agent,
                ..AgentChoice::default()
            },
            rules: Vec::new(),
            plan: None,
            by: Actor::from(BY),
        })
        .await?;
    send(app, session.id, form.prompt).await?;
    Ok(session.id)
}

async fn send(app: &App, id: SessionId, text: String) -> Result<(), SessionError> {
    let new = NewTurn {
        prompt: Prompt {
            text: with_line_feeds(&text),
            attachments: Vec::new(),
        },
        agent: None,
        if_busy: IfBusy::Queue,
        seen: None,
        finish: None,
        idempotency_key: None,
        run_on: RunOn::ItsMachine,
        by: Actor::from(BY),
    };
    app.sessions.start_turn(id, new).await.map(drop)
}

fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Send,
    Stop,
    Answer,
    Edit,
    Move,
    Unqueue,
    Here,
    Rename,
    Fork,
    Archive,
    Unarchive,
    Remove,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    id: String,
    action: Action,
    turn: Option<String>,
    prompt: Option<String>,
    place: Option<u32>,
    permission: Option<String>,
    answer: Option<PermissionAnswer>,
    title: Option<String>,
    after: Option<After>,
}

impl ChangeForm {
    fn page(&self) -> String {
        match self.after {
            Some(After::Overview) => "/".to_owned(),
            None => path(&self.id),
        }
    }
}

/// The page to return to, if not the session's own page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum After {
    Overview,
}

struct Done {
    /// The notice on the page that follows; `None` if that page shows the change anyway.
    text: Option<String>,
    to: String,
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let here = fields.page();
    match act(&app, fields).await {
        Ok(Done { text: None, to }) => Redirect::to(&to),
        Ok(Done { text: Some(text), to }) => done(&app, &visitor, Notice::good(html! { (text) }), &to),
        Err(error) => done(&app, &visitor, refused(error), &here),
    }
}

fn refused(error: SessionError) -> Notice {
    Notice::warn(html! { (Problem::from(error).detail()) })
}

async fn act(app: &App, form: ChangeForm) -> Result<Done, SessionError> {
    let missing = |what: &str| SessionError::Invalid {
        what: format!("the form doesn't say which {what}"),
    };
    let id: SessionId = form.id.parse().map_err(|_| missing("session"))?;
    let turn = || {
        let turn = form.turn.as_deref().unwrap_or_default();
        turn.parse().map_err(|_| missing("turn"))
    };
    let (sessions, by) = (&app.sessions, Actor::from(BY));
    let mut done = Done {
        text: None,
        to: form.page(),
    };
    match form.action {
        Action::Send => send(app, id, form.prompt.unwrap_or_default()).await?,
        Action::Stop => {
            let why = "stopped from the page".to_owned();
            match sessions.cancel_turn(id, Some(turn()?), by, why).await {
                // It has ended by itself, and the page shows that.
                Ok(_) | Err(SessionError::TurnNotActive { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Action::Answer => {
            let permission = form.permission.as_deref().unwrap_or_default();
            let permission = permission.parse().map_err(|_| missing("question"))?;
            let wanted = form.answer.ok_or_else(|| missing("answer"))?;
            let (counts, whose) = sessions.answer(id, permission, wanted, by).await?;
            if counts != wanted {
                done.text = Some(format!("“{whose}” answered first, so that answer counts."));
            }
        }
        Action::Edit => {
            let change = EditQueued {
                prompt: Some(with_line_feeds(&form.prompt.unwrap_or_default())),
                place: None,
            };
            edit_queued(app, id, turn()?, change, by).await?;
            done.text = Some("The prompt was updated.".to_owned());
        }
        Action::Move => {
            let change = EditQueued {
                prompt: None,
                place: Some(form.place.unwrap_or_default()),
            };
            edit_queued(app, id, turn()?, change, by).await?;
        }
        Action::Unqueue => {
            sessions.remove_queued(id, turn()?, by).await?;
            done.text = Some("The prompt was removed from the queue.".to_owned());
        }
        Action::Here => {
            sessions.move_here(id, by).await?;
            done.text = Some("This session now runs its prompts on this machine.".to_owned());
        }
        Action::Rename => {
            sessions.rename(id, form.title.unwrap_or_default(), by).await?;
        }
        Action::Fork => {
            let fork = sessions.fork(id, None, by).await?;
            done.to = path(&fork.id.to_string());
            done.text = Some(
                "This is a fork: it shares the turns so far and continues separately from here.".to_owned(),
            );
        }
        Action::Archive | Action::Unarchive => {
            let is_archived = form.action == Action::Archive;
            sessions.archive(id, is_archived, by).await?;
            done.text = Some(match is_archived {
                true => "The session was archived.".to_owned(),
                false => "The session was unarchived.".to_owned(),
            });
        }
        Action::Remove => {
            sessions.remove(id, by).await?;
            done.to = "/sessions".to_owned();
            done.text = Some("The session was removed.".to_owned());
        }
    }
    Ok(done)
}
