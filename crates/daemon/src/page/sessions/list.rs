//! The sessions page: what each agent is working on, and which sessions wait for an answer.

use std::sync::Arc;

use ::sessions::{SessionError, SessionQuery};
use maud::{Markup, html};
use protocol::{Agent, Session, SessionList, SessionState};

use super::state::{badge, path, title};
use crate::app::App;
use crate::http::Problem;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::form::token_field;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Count, Text};
use crate::page::parts::list::{
    Choice, Filter, SHOWN, count, elsewhere, empty, heading, no_match, table_card,
};
use crate::page::parts::text::{counted, exact};
use crate::page::parts::times::time_ago;
use crate::sessions::wire;
use crate::times::now_ms;

/// The filters of the list.
const STATES: [Choice<Option<SessionState>>; 2] = [
    Choice::new(" current", "Current", None),
    Choice::new("archived", "Archived", Some(SessionState::Archived)),
];

pub(crate) fn unreadable(error: SessionError) -> PageError {
    PageError::of(&Problem::from(error), "sessions")
}

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, filter: Filter) -> Result<Live, PageError> {
    let wanted = SessionQuery {
        state: filter.chosen(filter.state.as_deref(), &STATES)?,
        before: filter.id(filter.before.as_deref())?,
        limit: SHOWN,
        directory: None,
    };
    let list = match wire::list(&app.sessions, &app.durable.machines, wanted).await {
        Ok(list) => list,
        Err(error) => return Err(unreadable(error)),
    };
    let directories = known_directories(&app, &list).await;
    let agents = wire::agents_to_wire(&app.sessions).agents;
    let start = start_form(&visitor, &directories, &agents);
    let content = content(&list, &filter, &start, now_ms());
    Ok(Live::new("Sessions", Refresh::Still, content))
}

/// Directories to start a session in: the workspaces, and the directories of the sessions on the page.
async fn known_directories(app: &App, list: &SessionList) -> Vec<String> {
    let sessions = list.sessions.iter().map(|session| session.directory.clone());
    let mut known: Vec<String> = sessions.chain(workspace_roots(app).await).collect();
    known.sort();
    known.dedup();
    known
}

/// The roots of all workspaces. If they can't be read, another page reports it, and there are fewer choices.
pub(crate) async fn workspace_roots(app: &App) -> Vec<String> {
    let workspaces = app.plans.workspaces().await.unwrap_or_default();
    let roots = workspaces.iter().map(|workspace| &workspace.record.root);
    roots.map(|root| root.display().to_string()).collect()
}

fn content(list: &SessionList, filter: &Filter, start: &Markup, now_ms: u64) -> Markup {
    html! {
        (heading("Sessions", "A session is a conversation with an agent that works in its own sandbox. It keeps running when you leave, and you can pick it up here later."))
        (filter.state_links("Which sessions", &STATES, &html! {}))
        div data-part="sessions" {
            @if !list.sessions.is_empty() {
                (table_card(
                    &[Text("Session"), Text("State"), Text("Agent"), Count("Prompts"), Count("Changed")],
                    list.sessions.iter().map(|session| row(session, now_ms)),
                ))
            } @else if filter.is_everything() {
                (empty(
                    "No sessions yet",
                    "Ask an agent below or from a terminal. If no model is set up, a rehearsal shows how it works.",
                    "tidelock run \"…\"",
                ))
            } @else {
                (no_match(filter, "Current sessions"))
            }
            (filter.pages(list.next.as_ref()))
        }
        // Rendered only when the page is loaded, so that nothing that somebody types is lost.
        div data-part="start" data-keep { (start) }
    }
}

fn row(session: &Session, now_ms: u64) -> Markup {
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
            (count("Prompts", session.prompts))
            (count("Changed", time_ago(&session.changed_at, now_ms)))
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
    use protocol::SessionState;

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_harmless, assert_parts};
    use crate::page::sessions::state::tests::session;
    use crate::times::parse;

    fn rendered(sessions: Vec<Session>, filter: &Filter) -> String {
        let list = SessionList { sessions, next: None };
        content(&list, filter, &html! {}, parse(NOW).unwrap()).into_string()
    }

    #[test]
    fn an_empty_list_says_what_to_do() {
        let page = rendered(Vec::new(), &Filter::all("sessions"));
        assert!(page.contains("No sessions yet"), "{page}");
        let archived = Filter {
            state: Some("archived".to_owned()),
            ..Filter::all("sessions")
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
        let page = rendered(vec![waiting], &Filter::all("sessions"));
        assert_parts(
            &page,
            &["Waiting for you", "shell: rm -rf target", "1 prompt queued"],
        );
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
        assert_harmless(&rendered(vec![hostile], &Filter::all("sessions")));
    }
}
