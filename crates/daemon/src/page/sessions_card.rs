//! Sessions on the first page: who works, and who waits for somebody.

use ::sessions::SessionQuery;
use api::{Session, SessionState, TurnState};
use maud::{Markup, html};

use super::plan_text::counted;
use super::session_state::{badge, path, title};
use crate::app::App;
use crate::sessions::wire;

/// How many sessions are looked at.
const READ_SESSIONS: u32 = 100;
/// How many are named.
const NAMED_SESSIONS: usize = 8;

pub(super) async fn show(app: &App) -> Markup {
    let query = SessionQuery {
        limit: READ_SESSIONS,
        ..SessionQuery::default()
    };
    // The first page has much to tell. If the log cannot be read, another card says so.
    let list = wire::list(&app.conversations, query)
        .await
        .map(|list| list.sessions);
    card(&list.unwrap_or_default())
}

/// Whether somebody should look at it, or may want to watch.
fn is_named(session: &Session) -> bool {
    let ended_badly = matches!(
        session.last_state,
        Some(TurnState::Failed | TurnState::Interrupted)
    );
    session.state != SessionState::Idle || ended_badly
}

fn card(sessions: &[Session]) -> Markup {
    let named: Vec<&Session> = sessions.iter().filter(|session| is_named(session)).collect();
    let running = sessions.iter().filter(|session| session.active.is_some()).count();
    html! {
        section class="card" aria-labelledby="sessions" {
            div class="card-heading" {
                h2 id="sessions" { "Sessions" }
                a href="/sessions" data-key="sessions" { "See all" }
            }
            @if sessions.is_empty() {
                p { "None yet. " code { "tidelock run \"…\"" } " asks an agent, in a sandbox of its own." }
            } @else {
                p {
                    (counted(running as u64, "turn runs", "turns run")) ", "
                    (counted((sessions.len() - running) as u64, "session rests", "sessions rest")) "."
                }
                ul class="plain" {
                    @for session in named.iter().take(NAMED_SESSIONS) {
                        li { (badge(session)) " " a href=(path(&session.id)) data-key={ "session " (session.id) } { (title(session)) } }
                    }
                }
            }
        }
    }
}
