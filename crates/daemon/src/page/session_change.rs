//! What the forms of a session do.

use std::path::PathBuf;
use std::sync::Arc;

use ::sessions::{Actor, NewSession, NewTurn, Prompt, RunOn, SessionError};
use axum::extract::State;
use axum::response::Redirect;
use protocol::{AgentChoice, IfBusy, PermissionAnswer, SessionId};
use serde::Deserialize;

use super::form::OwnForm;
use super::notice::Notice;
use super::session_state::path;
use crate::app::App;
use crate::http::Problem;

/// Who asks, as it is written into the session.
const BY: &str = "the page";

/// The form that begins a session.
#[derive(Debug, Deserialize)]
pub(super) struct StartForm {
    directory: String,
    agent: String,
    prompt: String,
}

pub(super) async fn start(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<StartForm>,
) -> Redirect {
    match begin(&app, fields).await {
        Ok(session) => Redirect::to(&path(&session.to_string())),
        Err(error) => {
            let reason = Problem::from(error).detail().to_owned();
            app.sessions.leave_notice(
                visitor.session.id,
                Notice::Session {
                    done: false,
                    text: reason,
                },
            );
            Redirect::to("/sessions")
        }
    }
}

async fn begin(app: &App, form: StartForm) -> Result<SessionId, SessionError> {
    let session = app
        .conversations
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
            // A browser sends line breaks as two characters.
            text: text.replace("\r\n", "\n"),
            attachments: Vec::new(),
        },
        agent: None,
        if_busy: IfBusy::Queue,
        seen: None,
        idempotency_key: None,
        run_on: RunOn::ItsMachine,
        by: Actor::from(BY),
    };
    app.conversations.start_turn(id, new).await.map(drop)
}

/// What a form wants.
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

/// The form behind every button.
#[derive(Debug, Deserialize)]
pub(super) struct ChangeForm {
    id: String,
    action: Action,
    turn: Option<String>,
    prompt: Option<String>,
    place: Option<usize>,
    permission: Option<String>,
    answer: Option<PermissionAnswer>,
    title: Option<String>,
    after: Option<After>,
}

/// Where somebody wants to be afterwards, if that is not the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum After {
    Overview,
}

/// What became of a form.
struct Done {
    /// What is said on the page that follows; nothing if that shows it anyway.
    text: Option<String>,
    /// Where that is.
    to: String,
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let here = match fields.after {
        Some(After::Overview) => "/".to_owned(),
        None => path(&fields.id),
    };
    let (notice, to) = match act(&app, fields).await {
        Ok(done) => (
            done.text.map(|text| Notice::Session { done: true, text }),
            done.to,
        ),
        Err(error) => {
            let text = Problem::from(error).detail().to_owned();
            (Some(Notice::Session { done: false, text }), here)
        }
    };
    if let Some(notice) = notice {
        tracing::info!(?notice, "a form of the page was handled");
        app.sessions.leave_notice(visitor.session.id, notice);
    }
    Redirect::to(&to)
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
    let (sessions, by) = (&app.conversations, Actor::from(BY));
    let mut done = Done {
        text: None,
        to: match form.after {
            Some(After::Overview) => "/".to_owned(),
            None => path(&form.id),
        },
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
            let prompt = Prompt {
                text: form.prompt.as_deref().unwrap_or_default().replace("\r\n", "\n"),
                attachments: sessions.turn(turn()?).await?.record.prompt.attachments,
            };
            sessions.edit_queued(id, turn()?, prompt, by).await?;
            done.text = Some("The prompt was updated.".to_owned());
        }
        Action::Move => {
            sessions
                .move_queued(id, turn()?, form.place.unwrap_or_default(), by)
                .await?;
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
