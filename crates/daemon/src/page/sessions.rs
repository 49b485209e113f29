//! The page of sessions: who is being asked what, and who waits for an answer.

use std::sync::Arc;
use std::time::Duration;

use ::sessions::{SessionError, SessionQuery};
use axum::extract::State;
use maud::{Markup, html};
use protocol::{Agent, ErrorCode, Session, SessionId, SessionList, SessionState};
use serde::Deserialize;

use super::ansi::one_line;
use super::error::PageError;
use super::form::token_field;
use super::job_time::ago;
use super::layout::{Place, live_part, page_below};
use super::list_parts::{Asked, Choice, ListFilter, SHOWN, choices, elsewhere, id, pages, query};
use super::plan_text::{counted, exact};
use super::session_state::{badge, path, title};
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::Problem;
use crate::sessions::wire;
use crate::times::now_ms;

/// A stream says when something has changed; this is for ages.
const REFRESH: Duration = Duration::from_secs(5);

/// Which sessions are shown. It stands in the address, so that it can be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Which {
    /// Those that were not put away.
    #[default]
    Current,
    /// Those that were.
    Archived,
}

/// A part of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Filter {
    #[serde(default)]
    show: Which,
    /// Only those that are older than this one.
    before: Option<String>,
}

impl ListFilter for Filter {
    const LISTED: &'static str = "sessions";
}

impl Filter {
    fn path(&self) -> String {
        let show = (self.show == Which::Archived).then_some("archived");
        format!(
            "/sessions{}",
            query(&[("show", show), ("before", self.before.as_deref())])
        )
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    let live_path = format!("/live{}", filter.path());
    let live = live(&app, &visitor, &filter).await?;
    Ok(page_below(
        &app,
        &visitor,
        Place::Sessions,
        ("Sessions", &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    live(&app, &visitor, &filter).await
}

/// Sessions cannot be read.
pub(super) fn unreadable(error: SessionError) -> PageError {
    let code = match &error {
        SessionError::NotFound(_) => ErrorCode::SessionNotFound,
        SessionError::TurnNotFound(_) => ErrorCode::TurnNotFound,
        SessionError::Closed => ErrorCode::ShuttingDown,
        _ => ErrorCode::LogFailed,
    };
    let problem = Problem::from(error);
    PageError::new(
        code,
        html! { p { (problem.detail()) } p { a href="/sessions" { "All sessions" } } },
    )
}

async fn live(app: &App, visitor: &Visitor, filter: &Filter) -> Result<Markup, PageError> {
    let before: Option<SessionId> = id::<Filter, _>(filter.before.as_deref())?;
    let wanted = SessionQuery {
        state: (filter.show == Which::Archived).then_some(SessionState::Archived),
        before,
        limit: SHOWN,
        directory: None,
    };
    let list = match wire::list(&app.conversations, &app.durable.machines, wanted).await {
        Ok(list) => list,
        Err(error) => return Err(unreadable(error)),
    };
    let directories = known_directories(app, &list).await;
    let agents = wire::agents_to_wire(&app.conversations).agents;
    let start = html! { (start_form(visitor, &directories, &agents)) };
    Ok(live_part(
        app,
        visitor,
        REFRESH,
        &content(&list, filter, &start, now_ms()),
    ))
}

/// Where somebody may want to begin: the workspaces, and the directories of the sessions that are shown.
async fn known_directories(app: &App, list: &SessionList) -> Vec<String> {
    // The list of sessions is there. If the workspaces cannot be read, another page says so.
    let workspaces = app.plans.workspaces().await.unwrap_or_default();
    let workspaces = workspaces
        .iter()
        .map(|workspace| workspace.record.root.display().to_string());
    let sessions = list.sessions.iter().map(|session| session.directory.clone());
    let mut known: Vec<String> = sessions.chain(workspaces).collect();
    known.sort();
    known.dedup();
    known
}

fn content(list: &SessionList, filter: &Filter, start: &Markup, now_ms: u64) -> Markup {
    let shown = [(Which::Current, "Current"), (Which::Archived, "Archived")].map(|(show, word)| Choice {
        word,
        href: Filter { show, before: None }.path(),
        is_chosen: filter.show == show,
    });
    let at = |before: Option<String>| {
        Filter {
            before,
            ..filter.clone()
        }
        .path()
    };
    let newest = filter.before.is_some().then(|| at(None));
    let older = list.next.clone().map(|older| at(Some(older)));
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Sessions" }
                p {
                    "A session is a conversation with an agent that works in its own sandbox. It keeps running when you leave, and "
                    "you can pick it up here later."
                }
            }
        }
        (choices("Which sessions", &shown, &html! {}))
        div data-part="sessions" {
            @if list.sessions.is_empty() { (empty(filter)) } @else { (table(&list.sessions, now_ms)) }
            (pages("sessions", newest, older))
        }
        // It comes with the page alone, so that nothing that somebody types is lost.
        div data-part="start" data-keep { (start) }
    }
}

fn empty(filter: &Filter) -> Markup {
    html! {
        div class="card empty" {
            @if *filter == Filter::default() {
                h2 { "No sessions yet" }
                p { "Ask an agent below or from a terminal. If no model is set up, a rehearsal shows how it works." }
                p { code { "tidelock run \"…\"" } }
            } @else {
                h2 { "No matching sessions" }
                p { a href="/sessions" data-key="all" { "Current sessions" } }
            }
        }
    }
}

fn table(sessions: &[Session], now_ms: u64) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Session" }
                        th scope="col" { "State" }
                        th scope="col" { "Agent" }
                        th scope="col" class="count" { "Prompts" }
                        th scope="col" class="count" { "Changed" }
                    }
                }
                tbody { @for session in sessions { (row(session, now_ms)) } }
            }
        }
    }
}

fn row(session: &Session, now_ms: u64) -> Markup {
    let changed = ago(&session.changed_at, now_ms).map_or_else(|| "–".to_owned(), |ago| format!("{ago} ago"));
    html! {
        tr data-session=(session.id) {
            th scope="row" {
                a class="job-title" href=(path(&session.id)) data-key={ "show " (session.id) } { (title(session)) }
                small { code { (exact(&session.directory)) } }
                (elsewhere(session.machine.as_ref()))
            }
            td class="state" {
                (badge(session))
                @if let Some(asking) = session.active.as_ref().and_then(|active| active.asking.first()) {
                    small { (one_line(&asking.tool)) ": " (one_line(&asking.subject)) }
                }
                @if !session.queue.is_empty() { small { (counted(session.queue.len() as u64, "prompt queued", "prompts queued")) } }
            }
            td data-label="Agent" { (one_line(&session.agent.name)) }
            td class="count" data-label="Prompts" { (session.prompts) }
            td class="count" data-label="Changed" { time datetime=(session.changed_at) { (changed) } }
        }
    }
}

fn start_form(visitor: &Visitor, directories: &[String], agents: &[Agent]) -> Markup {
    html! {
        section class="card" aria-labelledby="start" {
            h2 id="start" { "Ask an agent" }
            form class="prompt-form" method="post" action="/sessions/start" {
                (token_field(visitor))
                label for="start-directory" { "Directory" }
                input id="start-directory" name="directory" list="directories" required
                    placeholder="/home/me/project" autocomplete="off"
                    value=(directories.first().map_or("", String::as_str));
                datalist id="directories" { @for directory in directories { option value=(directory) {} } }
                label for="start-agent" { "Agent" }
                select id="start-agent" name="agent" {
                    @for agent in agents.iter().filter(|agent| agent.missing.is_none()) {
                        option value=(agent.id) selected[agent.default] { (agent.id) }
                    }
                }
                label for="start-prompt" { "Prompt" }
                textarea id="start-prompt" name="prompt" rows="3" required {}
                div class="actions" { button type="submit" class="primary" id="begin" { "Start" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, NOW, assert_harmless};
    use super::super::session_state::tests::session;
    use super::*;
    use crate::times::parse;

    fn rendered(sessions: Vec<Session>, filter: &Filter) -> String {
        let list = SessionList { sessions, next: None };
        content(&list, filter, &html! {}, parse(NOW).unwrap()).into_string()
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        let page = rendered(Vec::new(), &Filter::default());
        assert!(page.contains("No sessions yet"), "{page}");
        let archived = Filter {
            show: Which::Archived,
            before: None,
        };
        let page = rendered(Vec::new(), &archived);
        assert!(page.contains("No matching sessions"), "{page}");
    }

    #[test]
    fn a_session_that_asks_says_what() {
        let waiting = Session {
            queue: vec!["turn".to_owned()],
            ..session(SessionState::Asking)
        };
        let page = rendered(vec![waiting], &Filter::default());
        for part in ["Waiting for you", "shell: rm -rf target", "1 prompt queued"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn words_of_others_become_text() {
        let mut hostile = session(SessionState::Asking);
        hostile.title = HOSTILE.to_owned();
        hostile.agent.name = HOSTILE.to_owned();
        if let Some(active) = &mut hostile.active {
            active.asking[0].tool = HOSTILE.to_owned();
            active.asking[0].subject = HOSTILE.to_owned();
        }
        assert_harmless(&rendered(vec![hostile], &Filter::default()));
    }
}
