//! The page of language servers.

use std::sync::Arc;

use maud::{Markup, html};
use protocol::{Server, ServerState};

use super::act::{Origin, buttons};
use super::detail::path;
use super::state::{badge, explanation, is_moving, memory};
use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Actions, Count, Text};
use crate::page::parts::list::{count, heading, table_card};

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, _: ()) -> Result<Live, PageError> {
    let servers = app.language_servers.list();
    Ok(Live::new(
        "Servers",
        refresh(&servers),
        content(&servers, &visitor),
    ))
}

fn refresh(servers: &[Server]) -> Refresh {
    Refresh::while_moving(servers.iter().any(is_moving))
}

fn content(servers: &[Server], visitor: &Visitor) -> Markup {
    html! {
        (heading("Language servers", "All agents on this machine share one warm server per workspace. If it crashes, it restarts by itself, and requests wait until it is back."))
        div data-part="servers" {
            @if servers.is_empty() {
                (empty())
            } @else {
                (table_card(
                    &[Text("Server"), Text("State"), Count("Memory"), Count("Restarts"), Count("Requests"), Count("Documents"), Count("Users"), Actions],
                    servers.iter().map(|server| row(server, visitor)),
                ))
            }
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
                a href=(path(&server.id)) data-key={ "show " (server.id) } { (server.server) }
                small { (server.root) }
                small { "generation " (server.generation) }
            }
            td class="state" {
                (badge(server))
                (explanation(server))
                (last_error(server))
            }
            @for (name, value) in counts { (count(name, value)) }
            td class="act" { div class="actions" { (buttons(server, visitor, Origin::List)) } }
        }
    }
}

/// The last error. For a server that is ready, it is history.
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
pub(crate) mod tests {
    use protocol::{ServerProgress, ServerReadiness};

    use super::*;
    use crate::page::parts::text::tests::assert_parts;

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

    pub(crate) fn in_state(state: ServerState) -> Server {
        Server {
            state,
            readiness: None,
            ..server("pyright")
        }
    }

    fn rendered(servers: &[Server]) -> String {
        content(servers, &Visitor::example()).into_string()
    }

    #[test]
    fn each_state_has_its_badge_and_its_buttons() {
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
            let page = rendered(&[in_state(state)]);
            assert!(page.contains(expected), "{state:?}: {page}");
            let found: Vec<&str> = ["Restart", "Stop", "Start"]
                .into_iter()
                .filter(|word| page.contains(&format!(">{word}</button>")))
                .collect();
            assert_eq!(found, buttons, "{state:?}: {page}");
        }
    }

    #[test]
    fn an_indexing_server_shows_how_far_it_is() {
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
        let page = rendered(&[indexing]);
        assert_parts(
            &page,
            &[
                "badge warn busy\">Indexing<",
                "Indexing · 12/30 (core)<progress max=\"100\" value=\"40\"",
                "value=\"100\"",
                "and 1 more",
            ],
        );
    }

    #[test]
    fn what_a_server_says_is_shown_as_text() {
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
        let page = rendered(std::slice::from_ref(&server));
        assert!(!page.contains("<script>alert"), "{page}");
        assert_parts(&page, &["&lt;script&gt;alert(1)&lt;/script&gt;&quot;"]);
        assert!(page.contains("href=\"/servers/%3Cscript%3E"), "{page}");
    }

    #[test]
    fn without_servers_the_page_says_what_to_do() {
        let page = rendered(&[]);
        assert_parts(&page, &["<code>tidelock lsp hover FILE:LINE:COL</code>"]);
    }

    #[test]
    fn what_moves_is_looked_at_more_often() {
        let waits = Server {
            retry_after_ms: Some(500),
            ..in_state(ServerState::Failed)
        };
        for (servers, expected) in [
            (vec![], Refresh::Still),
            (
                vec![server("ruff"), in_state(ServerState::Stopped)],
                Refresh::Still,
            ),
            (
                vec![server("ruff"), in_state(ServerState::Restarting)],
                Refresh::Moving,
            ),
            (vec![waits], Refresh::Moving),
        ] {
            assert_eq!(refresh(&servers), expected);
        }
    }
}
