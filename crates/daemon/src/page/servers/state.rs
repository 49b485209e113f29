//! The state of a language server, in the words and colours that every page uses.

use std::time::Duration;

use maud::{Markup, html};
use protocol::{Server, ServerReadiness, ServerState};

use crate::page::parts::text::{self, mebibytes, or_dash};
use crate::page::parts::times::human_duration;

/// How many progress reports of a server are shown. People can't follow more at once.
const SHOWN_PROGRESS: usize = 3;

pub(crate) fn badge(server: &Server) -> Markup {
    text::badge(look(server))
}

pub(crate) fn label(server: &Server) -> &'static str {
    look(server).1
}

fn look(server: &Server) -> (&'static str, &'static str) {
    match server.state {
        ServerState::Starting => ("badge warn busy", "Starting"),
        ServerState::Ready if is_indexing(server) => ("badge warn busy", "Indexing"),
        ServerState::Ready => ("badge good", "Ready"),
        ServerState::Restarting => ("badge warn busy", "Restarting"),
        ServerState::Stopping => ("badge warn busy", "Stopping"),
        ServerState::Stopped => ("badge", "Stopped"),
        ServerState::Failed => ("badge bad", "Failed"),
    }
}

fn is_indexing(server: &Server) -> bool {
    server.readiness == Some(ServerReadiness::Indexing)
}

/// Whether something is moving or counting down, so that people watch it.
pub(crate) fn is_moving(server: &Server) -> bool {
    match server.state {
        ServerState::Starting | ServerState::Restarting | ServerState::Stopping => true,
        ServerState::Ready => is_indexing(server) || !server.progress.is_empty(),
        ServerState::Stopped => false,
        ServerState::Failed => server.retry_after_ms.is_some(),
    }
}

/// The text below the badge: its progress, and when it retries.
pub(crate) fn explanation(server: &Server) -> Markup {
    html! {
        @if let (ServerState::Failed, Some(ms)) = (server.state, server.retry_after_ms) {
            // Rounded up, so that it never shows zero while it still waits.
            small { "retries in " (human_duration(Duration::from_secs(ms.div_ceil(1000)))) }
        }
        @for progress in server.progress.iter().take(SHOWN_PROGRESS) {
            @let far = progress.percentage.map(|percentage| percentage.min(100));
            small class="progress" {
                (progress.title)
                @if let Some(message) = &progress.message { " · " (message) }
                @if let Some(far) = far {
                    progress max="100" value=(far) aria-label={ "Progress of " (progress.title) } { (far) " %" }
                }
            }
        }
        @if server.progress.len() > SHOWN_PROGRESS {
            small { "and " (server.progress.len() - SHOWN_PROGRESS) " more" }
        }
    }
}

pub(crate) fn memory(server: &Server) -> String {
    or_dash(server.rss_bytes.map(mebibytes))
}
