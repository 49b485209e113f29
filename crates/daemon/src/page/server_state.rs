//! The state of a language server, as it is shown wherever one is.

use std::time::Duration;

use maud::{Markup, html};
use protocol::{Server, ServerReadiness, ServerState};

use super::layout::human_duration;

/// How many things that a server works on are shown. More than a few at once nobody can follow.
const SHOWN_PROGRESS: usize = 3;

/// The state as a coloured word.
pub(super) fn badge(server: &Server) -> Markup {
    let class = match server.state {
        ServerState::Ready if is_indexing(server) => "badge warn busy",
        ServerState::Ready => "badge good",
        ServerState::Starting | ServerState::Restarting | ServerState::Stopping => "badge warn busy",
        ServerState::Stopped => "badge",
        ServerState::Failed => "badge bad",
    };
    html! { span class=(class) { (label(server)) } }
}

/// The state for people.
pub(super) fn label(server: &Server) -> &'static str {
    match server.state {
        ServerState::Starting => "Starting",
        ServerState::Ready if is_indexing(server) => "Indexing",
        ServerState::Ready => "Ready",
        ServerState::Restarting => "Restarting",
        ServerState::Stopping => "Stopping",
        ServerState::Stopped => "Stopped",
        ServerState::Failed => "Failed",
    }
}

pub(super) fn is_indexing(server: &Server) -> bool {
    server.readiness == Some(ServerReadiness::Indexing)
}

/// Whether people watch it: something is on its way, or counts down.
pub(super) fn is_moving(server: &Server) -> bool {
    match server.state {
        ServerState::Starting | ServerState::Restarting | ServerState::Stopping => true,
        ServerState::Ready => is_indexing(server) || !server.progress.is_empty(),
        ServerState::Stopped => false,
        ServerState::Failed => server.retry_after_ms.is_some(),
    }
}

/// What stands below the badge: how far it is, and when it tries again.
pub(super) fn explanation(server: &Server) -> Markup {
    html! {
        @if let (ServerState::Failed, Some(ms)) = (server.state, server.retry_after_ms) {
            // Rounded up, so that it never says zero while nobody tries.
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

/// Memory for people.
pub(super) fn memory(server: &Server) -> String {
    match server.rss_bytes {
        Some(bytes) => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        None => "–".to_owned(),
    }
}
