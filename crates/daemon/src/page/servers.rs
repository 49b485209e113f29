//! The page of language servers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{Server, ServerState};

use super::layout::{Place, live_part, page};
use super::server_log;
use super::server_state::{badge, explanation, is_moving, memory};
use super::servers_change::{Origin, buttons};
use super::sign_in::Visitor;
use crate::app::App;

/// While something is on its way, people watch it.
const REFRESH_WHILE_MOVING: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(5);

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    page(&app, &visitor, Place::Servers, &live(&app, &visitor))
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor)
}

fn live(app: &App, visitor: &Visitor) -> Markup {
    let servers = app.language_servers.list();
    live_part(app, visitor, refresh(&servers), &content(&servers, visitor))
}

/// When to look again.
pub(super) fn refresh(servers: &[Server]) -> Duration {
    if servers.iter().any(is_moving) {
        REFRESH_WHILE_MOVING
    } else {
        REFRESH
    }
}

fn content(servers: &[Server], visitor: &Visitor) -> Markup {
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Language servers" }
                p {
                    "All agents on this machine share one warm server per workspace. If it crashes, it restarts by itself, and "
                    "requests wait until it is back."
                }
            }
        }
        div data-part="servers" {
            @if servers.is_empty() { (empty()) } @else { (table(servers, visitor)) }
        }
    }
}

fn empty() -> Markup {
    html! {
        div class="card empty" {
            h2 { "No language servers yet" }
            p {
                "A server appears here when you or an agent ask about code. It starts for the file's workspace and stays "
                "warm for the next question."
            }
            p { code { "tidelock lsp hover FILE:LINE:COL" } }
            p { code { "tidelock lsp config" } " shows which servers are available on this machine." }
        }
    }
}

fn table(servers: &[Server], visitor: &Visitor) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Server" }
                        th scope="col" { "State" }
                        th scope="col" class="count" { "Memory" }
                        th scope="col" class="count" { "Restarts" }
                        th scope="col" class="count" { "Requests" }
                        th scope="col" class="count" { "Documents" }
                        th scope="col" class="count" { "Users" }
                        th scope="col" { span class="skip" { "Actions" } }
                    }
                }
                tbody { @for server in servers { (row(server, visitor)) } }
            }
        }
    }
}

fn row(server: &Server, visitor: &Visitor) -> Markup {
    let counts = [
        ("Memory", memory(server)),
        ("Restarts", server.restarts.to_string()),
        ("Requests", server.requests.to_string()),
        ("Documents", server.open_documents.to_string()),
        ("Users", server.leases.to_string()),
    ];
    html! {
        tr {
            th scope="row" {
                a href=(server_log::path(&server.id)) data-key={ "show " (server.id) } { (server.server) }
                small { (server.root) }
                small { "generation " (server.generation) }
            }
            td class="state" {
                (badge(server))
                (explanation(server))
                (last_error(server))
            }
            @for (name, count) in counts {
                td class="count" data-label=(name) { (count) }
            }
            td class="act" { div class="actions" { (buttons(server, visitor, Origin::List)) } }
        }
    }
}

/// What went wrong last. Of a server that is ready it is history, and no reason to worry.
fn last_error(server: &Server) -> Markup {
    html! {
        @match &server.last_error {
            None => {}
            Some(error) if server.state == ServerState::Ready => small { "before: " (error) },
            Some(error) => small class="error" { (error) },
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use protocol::{ServerProgress, ServerReadiness};

    use super::*;
    use crate::app::tests::detached;

    /// A server that is ready.
    pub(crate) fn server(name: &str) -> Server {
        Server {
            id: format!("{name}-1a2b"),
            state: ServerState::Ready,
            server: name.to_owned(),
            root: "/home/me/project".to_owned(),
            generation: 3,
            since_ms: 65_000,
            readiness: Some(ServerReadiness::Ready),
            progress: Vec::new(),
            pid: Some(4242),
            rss_bytes: Some(100 << 20),
            restarts: 2,
            last_error: None,
            retry_after_ms: None,
            leases: 1,
            open_documents: 4,
            pending_requests: 0,
            requests: 17,
        }
    }

    pub(in super::super) fn in_state(state: ServerState) -> Server {
        Server {
            state,
            readiness: None,
            ..server("pyright")
        }
    }

    async fn rendered(servers: &[Server]) -> String {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        content(servers, &visitor).into_string()
    }

    #[tokio::test]
    async fn each_state_has_its_badge_and_its_buttons() {
        for (state, expected, buttons) in [
            (
                ServerState::Starting,
                "badge warn busy\">Starting",
                &["Restart", "Stop"] as &[&str],
            ),
            (ServerState::Ready, "badge good\">Ready", &["Restart", "Stop"]),
            (
                ServerState::Restarting,
                "badge warn busy\">Restarting",
                &["Restart", "Stop"],
            ),
            (ServerState::Stopping, "badge warn busy\">Stopping", &[]),
            (ServerState::Stopped, "badge\">Stopped", &["Start"]),
            (ServerState::Failed, "badge bad\">Failed", &["Restart", "Stop"]),
        ] {
            let page = rendered(&[in_state(state)]).await;
            assert!(page.contains(expected), "{state:?}: {page}");
            let found: Vec<&str> = ["Restart", "Stop", "Start"]
                .into_iter()
                .filter(|word| page.contains(&format!(">{word}</button>")))
                .collect();
            assert_eq!(found, buttons, "{state:?}: {page}");
        }
    }

    #[tokio::test]
    async fn an_indexing_server_shows_how_far_it_is() {
        let progress = |title: &str, percentage| ServerProgress {
            title: title.to_owned(),
            message: Some("12/30 (core)".to_owned()),
            percentage,
        };
        let indexing = Server {
            readiness: Some(ServerReadiness::Indexing),
            progress: vec![
                progress("Indexing", Some(40)),
                progress("Flood", Some(900)),
                progress("c", None),
                progress("d", None),
            ],
            ..server("rust-analyzer")
        };
        let page = rendered(&[indexing]).await;
        for part in [
            "badge warn busy\">Indexing<",
            "Indexing · 12/30 (core)<progress max=\"100\" value=\"40\"",
            "value=\"100\"",
            "and 1 more",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[tokio::test]
    async fn what_a_server_says_is_shown_as_text() {
        let hostile = "<script>alert(1)</script>\"'&";
        let server = Server {
            id: format!("{hostile}/../x"),
            server: hostile.to_owned(),
            root: hostile.to_owned(),
            last_error: Some(hostile.to_owned()),
            progress: vec![ServerProgress {
                title: hostile.to_owned(),
                message: Some(hostile.to_owned()),
                percentage: Some(1),
            }],
            ..server("x")
        };
        let page = rendered(std::slice::from_ref(&server)).await;
        assert!(!page.contains("<script>alert"), "{page}");
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"),
            "{page}"
        );
        assert!(page.contains("href=\"/servers/%3Cscript%3E"), "{page}");
    }

    #[tokio::test]
    async fn without_servers_the_page_says_what_to_do() {
        let page = rendered(&[]).await;
        assert!(
            page.contains("<code>tidelock lsp hover FILE:LINE:COL</code>"),
            "{page}"
        );
    }

    #[test]
    fn what_moves_is_looked_at_more_often() {
        let waits = Server {
            retry_after_ms: Some(500),
            ..in_state(ServerState::Failed)
        };
        for (servers, expected) in [
            (vec![], REFRESH),
            (vec![server("ruff"), in_state(ServerState::Stopped)], REFRESH),
            (
                vec![server("ruff"), in_state(ServerState::Restarting)],
                REFRESH_WHILE_MOVING,
            ),
            (vec![waits], REFRESH_WHILE_MOVING),
        ] {
            assert_eq!(refresh(&servers), expected);
        }
    }
}
