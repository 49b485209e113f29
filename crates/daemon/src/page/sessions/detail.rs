//! One session: what it is doing, what it asks, what is queued, the state of its plan, and the conversation.
//!
//! The conversation is rendered once, when the page is loaded, with its position in the stream; the script continues
//! from there. The rest is live.

use std::fmt::Display;
use std::sync::Arc;

use ::sessions::{SessionError, Turn as FoundTurn};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use maud::{Markup, html};
use protocol::{ErrorCode, Session, SessionId, SessionState, TurnId, WaitingPermission};
use serde::Deserialize;

use super::list::unreadable;
use super::plan::{self, SessionPlan};
use super::state::{badge, path, title};
use super::turn::{ShownTurn, article, visible};
use crate::app::App;
use crate::needs::waiting_words;
use crate::page::login::Visitor;
use crate::page::overview::needs::{After, answers};
use crate::page::parts::ansi::one_line;
use crate::page::parts::assets;
use crate::page::parts::error::PageError;
use crate::page::parts::form::{PathId, button_form, hidden, token_field};
use crate::page::parts::layout::{Live, NavItem, Refresh, live_path, page_around};
use crate::page::parts::list::elsewhere;
use crate::page::parts::text::{exact, percent_encode};
use crate::page::parts::times::time;
use crate::sessions::wire;

/// How many turns are shown. Older ones are behind a link.
const SHOWN_TURNS: usize = 20;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Window {
    /// Only turns before this one.
    before: Option<String>,
}

struct Detail {
    id: SessionId,
    session: Session,
    queue: Vec<protocol::Turn>,
    plan: SessionPlan,
}

/// Turns, oldest first.
struct Conversation {
    turns: Vec<ShownTurn>,
    /// Where older turns begin, if there are any.
    older: Option<String>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
    window: Result<Query<Window>, QueryRejection>,
) -> Result<Markup, PageError> {
    let detail = find(&app, &id).await?;
    let conversation = read_conversation(&app, detail.id, window).await?;
    let live = live(&visitor, &detail);
    // The conversation tells the script when to refresh, so that the page holds one connection instead of
    // two.
    let content = html! {
        div class="beside" {
            div class="beside-live" data-live=(live_path(&path(&detail.session.id))) { (live.render(&app, &visitor)) }
            div class="beside-main" { (section(&visitor, &detail.session, &conversation)) }
        }
    };
    Ok(page_around(
        &app,
        &visitor,
        NavItem::Sessions,
        &live.title,
        &content,
    ))
}

pub(crate) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Markup, PageError> {
    Ok(live(&visitor, &find(&app, &id).await?).render(&app, &visitor))
}

/// The conversation alone. The script fetches it when a turn has begun or ended, or when it has missed something.
pub(crate) async fn show_conversation(
    State(app): State<Arc<App>>,
    _visitor: Visitor,
    PathId(id): PathId,
    window: Result<Query<Window>, QueryRejection>,
) -> Result<Markup, PageError> {
    let detail = find(&app, &id).await?;
    let conversation = read_conversation(&app, detail.id, window).await?;
    Ok(turns(&detail.session, &conversation))
}

async fn find(app: &App, text: &str) -> Result<Detail, PageError> {
    let id = text.parse().map_err(|_| not_there(text))?;
    match read(app, id).await {
        Ok(detail) => Ok(detail),
        Err(SessionError::NotFound(_)) => Err(not_there(text)),
        Err(error) => Err(unreadable(error)),
    }
}

fn not_there(id: &str) -> PageError {
    let why = "It may have been removed.";
    PageError::not_there(ErrorCode::SessionNotFound, "session", "sessions", id, why)
}

async fn read(app: &App, id: SessionId) -> Result<Detail, SessionError> {
    let session = app.sessions.get(id).await?;
    let queue = app.sessions.queue(id).await?;
    let shown = wire::shown(&app.sessions, &app.durable.machines, &session);
    let plan = plan::read(app, session.record.plan).await;
    Ok(Detail {
        id,
        session: shown,
        queue: queue.iter().map(wire::turn_to_wire).collect(),
        plan,
    })
}

async fn read_conversation(
    app: &App,
    id: SessionId,
    window: Result<Query<Window>, QueryRejection>,
) -> Result<Conversation, PageError> {
    let window = window.map(|Query(window)| window).unwrap_or_default();
    let before: Option<TurnId> = match &window.before {
        Some(before) => Some(before.parse().map_err(|_| not_there(before))?),
        None => None,
    };
    match fold(app, id, before).await {
        Ok(conversation) => Ok(conversation),
        Err(error) => Err(unreadable(error)),
    }
}

async fn fold(app: &App, id: SessionId, before: Option<TurnId>) -> Result<Conversation, SessionError> {
    let mut found: Vec<FoundTurn> = app.sessions.turns(id, before, SHOWN_TURNS + 1).await?;
    let has_older = found.len() > SHOWN_TURNS;
    found.truncate(SHOWN_TURNS);
    let older = found.last().filter(|_| has_older).map(|turn| turn.id.to_string());
    found.reverse();
    let mut turns = Vec::with_capacity(found.len());
    for turn in found {
        let (sequence, transcript) = app.sessions.transcript(turn.id).await?;
        turns.push(ShownTurn {
            turn: wire::turn_shown(&app.jobs, &turn).await?,
            sequence: sequence.get(),
            transcript,
        });
    }
    Ok(Conversation { turns, older })
}

fn live(visitor: &Visitor, detail: &Detail) -> Live {
    let content = content(visitor, detail);
    Live::new(title(&detail.session), Refresh::Reading, content)
}

fn content(visitor: &Visitor, detail: &Detail) -> Markup {
    let session = &detail.session;
    let active = session.active.as_ref().map(|active| active.turn.as_str());
    html! {
        div class="heading" {
            div data-part="heading" {
                h1 class="job-title" { (title(session)) }
                p { code { (session.id) } }
            }
            div class="actions" data-part="actions" data-active-turn=(active.unwrap_or_default()) {
                (badge(session)) (stop(visitor, session))
            }
        }
        div id="asking" data-part="asking" { (asking(visitor, session)) }
        div data-part="queue" { (queue(visitor, session, &detail.queue)) }
        div data-part="plan" { (plan::card(visitor, &detail.plan)) }
        section class="card" aria-labelledby="about" data-part="about" {
            div class="card-heading" {
                h2 id="about" { "About" }
                a href="/sessions" data-key="all" { "All sessions" }
            }
            (facts(session))
            (manage(visitor, session))
        }
    }
}

fn button(visitor: &Visitor, session: &Session, action: &str, word: &str, more: &Markup) -> Markup {
    let fields: [(&str, &dyn Display); 2] = [("id", &session.id), ("action", &action)];
    button_form(
        visitor,
        "/sessions/change",
        &fields,
        &html! {
            (more)
            button type="submit" id=(action) data-key=(action) { (word) }
        },
    )
}

fn stop(visitor: &Visitor, session: &Session) -> Markup {
    match &session.active {
        Some(active) if active.stop.is_none() => {
            button(visitor, session, "stop", "Stop", &hidden("turn", &active.turn))
        }
        Some(_) | None => html! {},
    }
}

fn asking(visitor: &Visitor, session: &Session) -> Markup {
    let asking: &[WaitingPermission] = session.active.as_ref().map_or(&[], |active| &active.asking);
    html! {
        @for question in asking {
            section class="card asking" aria-label="Permission request" data-permission=(question.permission) {
                h2 { "Allow " (one_line(&session.agent.name)) " to do this?" }
                p { strong { (one_line(&question.tool)) } ": " code { (exact(&question.subject)) } }
                div class="actions" {
                    (answers(visitor, session, question, After::Session))
                }
            }
        }
    }
}

fn queue(visitor: &Visitor, session: &Session, queue: &[protocol::Turn]) -> Markup {
    html! {
        @if !queue.is_empty() {
            section class="card" aria-labelledby="queue" {
                h2 id="queue" { "Queue" }
                @if let Some(machine) = &session.waits_for {
                    p class="quiet" { (one_line(&waiting_words(machine))) }
                    (button(visitor, session, "here", "Run on this machine", &html! {}))
                }
                ol class="queue" {
                    @for (place, turn) in queue.iter().enumerate() {
                        li data-queued=(turn.id) {
                            form class="queued" method="post" action="/sessions/change" {
                                (token_field(visitor))
                                (hidden("id", &session.id))
                                (hidden("turn", &turn.id))
                                label class="visually-hidden" for={ "queued-" (turn.id) } { "Prompt " (place + 1) }
                                textarea id={ "queued-" (turn.id) } name="prompt" rows="2" data-key={ "prompt " (turn.id) } {
                                    (visible(&turn.prompt))
                                }
                                div class="actions" {
                                    button type="submit" name="action" value="edit" data-key={ "edit " (turn.id) } { "Save" }
                                    @if place > 0 {
                                        (hidden("place", place - 1))
                                        button type="submit" name="action" value="move" data-key={ "move " (turn.id) } { "Move up" }
                                    }
                                    button type="submit" name="action" value="unqueue" data-key={ "unqueue " (turn.id) } { "Remove" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn facts(session: &Session) -> Markup {
    html! {
        dl class="facts" {
            dt { "Directory" } dd { code { (exact(&session.directory)) } (elsewhere(session.machine.as_ref())) }
            dt { "Agent" } dd {
                (one_line(&session.agent.name))
                @if let Some(model) = &session.agent.model { small { (one_line(model)) } }
            }
            dt { "Opened" } dd { (time(&session.opened_at)) " by " (one_line(&session.opened_by)) }
            dt { "Prompts" } dd { (session.prompts) }
            @if let Some(from) = session.forked_from.as_ref().and_then(|fork| fork.session.as_deref()) {
                dt { "Forked from" } dd { a href=(path(from)) data-key="forked from" { (from) } }
            }
            @if session.forks > 0 { dt { "Forks" } dd { (session.forks) } }
        }
    }
}

fn manage(visitor: &Visitor, session: &Session) -> Markup {
    let is_unused = session.active.is_none() && session.queue.is_empty();
    let export = |format: &str| {
        format!(
            "/v1/sessions/{}/export?format={format}",
            percent_encode(&session.id)
        )
    };
    html! {
        details class="manage" data-key="manage" {
            summary { "More" }
            form class="rename" method="post" action="/sessions/change" {
                (token_field(visitor))
                (hidden("id", &session.id))
                (hidden("action", "rename"))
                label for="rename-title" { "Title" }
                input id="rename-title" name="title" value=(title(session)) required maxlength="200" data-key="title";
                button type="submit" data-key="rename" { "Rename" }
            }
            div class="actions" {
                @if session.last_state.is_some() { (button(visitor, session, "fork", "Fork", &html! {})) }
                @if is_unused && !session.archived { (button(visitor, session, "archive", "Archive", &html! {})) }
                @if session.archived { (button(visitor, session, "unarchive", "Unarchive", &html! {})) }
                @if is_unused && session.forks == 0 { (button(visitor, session, "remove", "Remove", &html! {})) }
                a class="button" href=(export("markdown")) data-key="export markdown" { "Export as Markdown" }
                a class="button" href=(export("json")) data-key="export json" { "Export as JSON" }
            }
        }
    }
}

fn section(visitor: &Visitor, session: &Session, conversation: &Conversation) -> Markup {
    let id = percent_encode(&session.id);
    html! {
        section class="conversation" aria-label="Conversation" data-conversation={ "/live/sessions/" (id) "/conversation" }
            data-turns={ "/v1/sessions/" (id) "/turns/" } {
            div id="turns" data-turn-list { (turns(session, conversation)) }
            p class="stream-state" id="stream-state" role="status" {}
            @if session.state != SessionState::Archived {
                form class="prompt-form" id="prompt-form" method="post" action="/sessions/change" {
                    (token_field(visitor))
                    (hidden("id", &session.id))
                    (hidden("action", "send"))
                    label class="visually-hidden" for="prompt" { "Prompt" }
                    textarea id="prompt" name="prompt" rows="3" required placeholder="Message the agent… (Ctrl+Enter to send)" {}
                    div class="actions" { button type="submit" class="primary" id="send" { "Send" } }
                }
            }
        }
        script src=(assets::SESSION_SCRIPT.url()) defer {}
    }
}

fn turns(session: &Session, conversation: &Conversation) -> Markup {
    html! {
        @if let Some(older) = &conversation.older {
            p class="pages" {
                a id="turns-older" href={ (path(&session.id)) "?before=" (percent_encode(older)) } { "Older turns" }
            }
        }
        @if conversation.turns.is_empty() { p class="empty" { "No messages yet." } }
        @for shown in &conversation.turns { (article(shown)) }
    }
}
