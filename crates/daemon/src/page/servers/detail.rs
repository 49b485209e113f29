//! One language server: its state and its log.

use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};
use protocol::{ErrorCode, Server, ServerLog, ServerState};

use super::act::{Origin, buttons};
use super::state::{badge, explanation, is_moving, memory};
use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::PathId;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::text::percent_encode;
use crate::page::parts::times::{human_duration, time};

/// How many lines are shown. The command line shows all of the stored ones.
const SHOWN_LINES: usize = 200;

/// How much of a line is shown: a server that logs its whole traffic would fill the page.
const LINE_CHARACTERS: usize = 2000;

pub(crate) fn path(id: &str) -> String {
    format!("/servers/{}", percent_encode(id))
}

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, PathId(id): PathId) -> Result<Live, PageError> {
    let servers = &app.language_servers;
    let found = servers
        .find(&id)
        .and_then(|server| Ok((server, servers.log(&id)?)));
    let Ok((server, log)) = found else {
        let detail = html! {
            p { "No language server with the id " code { (id) } " has been used since the daemon started." }
            p { a href="/servers" { "All language servers" } }
        };
        return Err(PageError::new(ErrorCode::ServerNotFound, detail));
    };
    let refresh = match is_moving(&server) {
        true => Refresh::Moving,
        false => Refresh::Reading,
    };
    let title = format!("{} in {}", server.server, server.root);
    Ok(Live::new(title, refresh, content(&visitor, &server, &log)))
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
                        (time(&line.at))
                        span class="log-level" { (level(&line.level)) }
                        span class="log-text" { (cut(&line.text)) }
                    }
                }
            }
        }
    }
}

/// A known level. Servers invent others, and those must not become a class name.
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

    use super::*;
    use crate::page::parts::text::tests::{assert_absent, assert_parts};
    use crate::page::servers::list::tests::server;

    fn line(level: &str, text: &str) -> ServerLogLine {
        ServerLogLine {
            at: "2026-01-31T09:30:00Z".to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_log_is_shown_as_text_whatever_it_says() {
        let visitor = Visitor::example();
        let log = ServerLog {
            lines: vec![
                line("state", "ready"),
                line("\" onclick=\"x", "<img src=x onerror=alert(1)>"),
                line("stderr", &"ü".repeat(LINE_CHARACTERS + 1)),
            ],
        };
        let page = content(&visitor, &server("ruff"), &log).into_string();
        assert_parts(
            &page,
            &[
                "<span class=\"log-level\">state</span><span class=\"log-text\">ready</span>",
                "<div class=\"log-line log\">",
                "&lt;img src=x onerror=alert(1)&gt;",
                "<dt>Requests</dt><dd class=\"number\">17, 0 waiting</dd>",
            ],
        );
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
        assert_parts(&shown, &["&lt;5&gt;"]);
        assert_absent(&shown, &["&lt;4&gt;"]);
        assert!(
            lines(&ServerLog { lines: Vec::new() })
                .into_string()
                .contains("No output yet.")
        );
    }
}
