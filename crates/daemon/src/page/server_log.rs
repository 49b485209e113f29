//! One language server: everything about it, and what it says.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use maud::{Markup, html};
use protocol::{ErrorCode, Server, ServerLog, ServerState};

use super::error::PageError;
use super::history::percent_encode;
use super::layout::{Place, human_duration, live_part, page_below};
use super::overview::readable;
use super::server_state::{badge, explanation, is_moving, memory};
use super::servers_change::{Origin, buttons};
use super::sign_in::Visitor;
use crate::app::App;

/// A log is read while it is written.
const REFRESH: Duration = Duration::from_secs(2);
const REFRESH_WHILE_MOVING: Duration = Duration::from_secs(1);

/// How many lines are shown. The command line shows all that are kept.
const SHOWN_LINES: usize = 200;

/// How much of a line is shown: a server that logs its whole traffic would fill the page.
const LINE_CHARACTERS: usize = 2000;

/// Where a server is shown.
pub(super) fn path(id: &str) -> String {
    format!("/servers/{}", percent_encode(id))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
) -> Result<Markup, PageError> {
    let (server, log) = find(&app, id)?;
    let live_path = format!("/live{}", path(&server.id));
    let title = format!("{} in {}", server.server, server.root);
    let live = live(&app, &visitor, &server, &log);
    Ok(page_below(
        &app,
        &visitor,
        Place::Servers,
        (&title, &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
) -> Result<Markup, PageError> {
    let (server, log) = find(&app, id)?;
    Ok(live(&app, &visitor, &server, &log))
}

fn find(app: &App, id: Result<Path<String>, PathRejection>) -> Result<(Server, ServerLog), PageError> {
    // An id that cannot be read is one that nobody has.
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let found = app
        .language_servers
        .find(&id)
        .and_then(|server| Ok((server, app.language_servers.log(&id)?)));
    found.map_err(|_| {
        let detail = html! {
            p { "No language server with the id " code { (id) } " has been used since the daemon started." }
            p { a href="/servers" { "All language servers" } }
        };
        PageError::new(ErrorCode::ServerNotFound, detail)
    })
}

fn live(app: &App, visitor: &Visitor, server: &Server, log: &ServerLog) -> Markup {
    let refresh = if is_moving(server) {
        REFRESH_WHILE_MOVING
    } else {
        REFRESH
    };
    live_part(app, visitor, refresh, &content(visitor, server, log))
}

fn content(visitor: &Visitor, server: &Server, log: &ServerLog) -> Markup {
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { (server.server) }
                p { (server.root) }
            }
            div class="actions" { (buttons(server, visitor, Origin::Detail)) }
        }
        section class="card" aria-labelledby="state" data-part="state" {
            div class="card-heading" {
                h2 id="state" { "State" }
                a href="/servers" data-key="all" { "All language servers" }
            }
            (facts(server))
        }
        section class="card" aria-labelledby="log" data-part="log" {
            h2 id="log" { "Log" }
            (lines(log))
        }
    }
}

fn facts(server: &Server) -> Markup {
    html! {
        dl class="facts" {
            dt { "State" } dd class="state" { (badge(server)) (explanation(server)) }
            dt { "For" } dd { (human_duration(Duration::from_millis(server.since_ms))) }
            dt { "Generation" } dd class="number" { (server.generation) }
            @if let Some(pid) = server.pid { dt { "Process id" } dd class="number" { (pid) } }
            dt { "Memory" } dd class="number" { (memory(server)) }
            dt { "Restarts" } dd class="number" { (server.restarts) }
            dt { "Requests" } dd class="number" { (server.requests) ", " (server.pending_requests) " waiting" }
            dt { "Documents" } dd class="number" { (server.open_documents) " open" }
            dt { "Users" } dd class="number" { (server.leases) }
            @if let Some(error) = &server.last_error { dt { "Last error" } dd class=[(server.state != ServerState::Ready).then_some("error")] { (error) } }
            dt { "Id" } dd { code { (server.id) } }
        }
    }
}

fn lines(log: &ServerLog) -> Markup {
    let left_out = log.lines.len().saturating_sub(SHOWN_LINES);
    html! {
        @if log.lines.is_empty() {
            p { "No output yet." }
        } @else {
            @if left_out > 0 {
                p class="more" { "Showing the last " (SHOWN_LINES) " lines. " code { "tidelock lsp log" } " shows more." }
            }
            div class="log" data-scroll="log" data-key="log" tabindex="0" role="region" aria-label="Log lines" {
                @for line in log.lines.iter().skip(left_out) {
                    div class={ "log-line " (level(&line.level)) } {
                        time datetime=(line.at) { (readable(&line.at)) }
                        span class="log-level" { (level(&line.level)) }
                        span class="log-text" { (cut(&line.text)) }
                    }
                }
            }
        }
    }
}

/// A level that we know; anything else is said by the server and must not become a class of ours.
fn level(level: &str) -> &'static str {
    match level {
        "error" => "error",
        "warning" => "warning",
        "info" => "info",
        "stderr" => "stderr",
        "state" => "state",
        _ => "log",
    }
}

fn cut(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(LINE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use protocol::ServerLogLine;

    use super::super::servers::tests::server;
    use super::*;
    use crate::app::tests::detached;

    fn line(level: &str, text: &str) -> ServerLogLine {
        ServerLogLine {
            at: "2026-01-31T09:30:00Z".to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_log_is_shown_as_text_whatever_it_says() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        let log = ServerLog {
            lines: vec![
                line("state", "ready"),
                line("\" onclick=\"x", "<img src=x onerror=alert(1)>"),
                line("stderr", &"ü".repeat(LINE_CHARACTERS + 1)),
            ],
        };
        let page = content(&visitor, &server("ruff"), &log).into_string();
        for part in [
            "<span class=\"log-level\">state</span><span class=\"log-text\">ready</span>",
            "<div class=\"log-line log\">",
            "&lt;img src=x onerror=alert(1)&gt;",
            "<dt>Requests</dt><dd class=\"number\">17, 0 waiting</dd>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<img"), "{page}");
        assert!(
            page.contains(&format!("{}…<", "ü".repeat(LINE_CHARACTERS))),
            "{page}"
        );
    }

    #[test]
    fn the_last_lines_are_shown() {
        let log = ServerLog {
            lines: (0..SHOWN_LINES + 5)
                .map(|number| line("log", &format!("<{number}>")))
                .collect(),
        };
        let shown = lines(&log).into_string();
        assert_eq!(shown.matches("log-text").count(), SHOWN_LINES);
        assert!(
            shown.contains("&lt;5&gt;") && !shown.contains("&lt;4&gt;"),
            "{shown}"
        );
        assert!(
            lines(&ServerLog { lines: Vec::new() })
                .into_string()
                .contains("No output yet.")
        );
    }

    #[test]
    fn any_id_fits_into_the_address() {
        assert_eq!(path("rust-analyzer-1a2b"), "/servers/rust-analyzer-1a2b");
        assert_eq!(path("../a?b"), "/servers/..%2Fa%3Fb");
    }
}
