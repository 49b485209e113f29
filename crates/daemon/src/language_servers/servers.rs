//! Converts servers for the wire.

use std::sync::Arc;

use kernel::Clock;
use lsp::{
    ConfigOrigin, ProbeResult, ReadyState, RecordLevel, RecordLine, Role, ServerAvailability, ServerCheck,
    ServerEntry, ServerView,
};
use protocol::{
    Availability, ConfiguredServer, Server, ServerHealth, ServerLog, ServerLogLine, ServerProgress,
    ServerReadiness, ServerState,
};

use crate::app::{whole_ms, whole_ms_up};
use crate::times;

pub(super) fn to_wire(view: &ServerView, clock: &Arc<dyn Clock>) -> Server {
    let status = &view.status;
    let now = clock.now();
    let (readiness, progress) = match &view.readiness {
        None => (None, Vec::new()),
        Some(ReadyState::Ready) => (Some(ServerReadiness::Ready), Vec::new()),
        Some(ReadyState::Indexing {
            title,
            message,
            percentage,
        }) => {
            let progress = ServerProgress {
                title: title.clone(),
                message: message.clone(),
                percentage: *percentage,
            };
            (Some(ServerReadiness::Indexing), vec![progress])
        }
    };
    let (state, retry_after_ms) = match &status.state {
        lsp::ServerState::Starting => (ServerState::Starting, None),
        lsp::ServerState::Ready => (ServerState::Ready, None),
        lsp::ServerState::Restarting => (ServerState::Restarting, None),
        lsp::ServerState::Stopping => (ServerState::Stopping, None),
        lsp::ServerState::Stopped { .. } => (ServerState::Stopped, None),
        lsp::ServerState::Failed { retry_at, .. } => {
            let rest = retry_at.saturating_duration_since(now);
            (ServerState::Failed, Some(whole_ms_up(rest)))
        }
    };
    Server {
        id: view.id.clone(),
        state,
        server: status.key.server.to_string(),
        root: status.key.root.to_string_lossy().into_owned(),
        generation: status.generation.get(),
        since_ms: status
            .since
            .map_or(0, |since| whole_ms(now.saturating_duration_since(since))),
        readiness,
        progress,
        pid: view.pid,
        rss_bytes: view.rss_bytes,
        restarts: status.restarts,
        last_error: status.last_error.as_ref().map(|failure| {
            match (failure.exit, &view.last_exit) {
                // When the failure was noticed, the exit status wasn't known yet.
                (None, Some(exit)) => format!("{failure} ({exit})"),
                _ => failure.to_string(),
            }
        }),
        retry_after_ms,
        leases: status.leases as u64,
        open_documents: view.documents.open as u64,
        pending_requests: view.pending as u64,
        requests: view.counters.requests_sent,
    }
}

pub(super) fn health_to_wire(check: &ServerCheck, clock: &Arc<dyn Clock>) -> ServerHealth {
    let (answers, answered_in_ms) = match &check.probe {
        ProbeResult::NotAsked => (None, None),
        ProbeResult::Answered { took } => (Some(true), Some(whole_ms(*took))),
        ProbeResult::Failed { .. } => (Some(false), None),
    };
    ServerHealth {
        server: to_wire(&check.view, clock),
        alive: check.view.pid.is_some() || answers == Some(true),
        answers,
        answered_in_ms,
    }
}

pub(super) fn log_to_wire(lines: Vec<RecordLine>) -> ServerLog {
    let lines = lines.into_iter().map(|line| ServerLogLine {
        at: times::rfc3339(line.at),
        level: match line.level {
            RecordLevel::Error => "error",
            RecordLevel::Warning => "warning",
            RecordLevel::Info => "info",
            RecordLevel::Log => "log",
            RecordLevel::Stderr => "stderr",
            RecordLevel::State => "state",
        }
        .to_owned(),
        text: line.text,
    });
    ServerLog {
        lines: lines.collect(),
    }
}

pub(super) fn entry_to_wire(entry: &ServerEntry) -> ConfiguredServer {
    ConfiguredServer {
        server: entry.name.to_string(),
        languages: entry.languages.iter().map(ToString::to_string).collect(),
        role: match entry.role {
            Role::Primary => "primary",
            Role::Supplement => "supplement",
        }
        .to_owned(),
        source: match entry.origin {
            ConfigOrigin::BuiltIn => "built-in",
            ConfigOrigin::User(_) => "user",
            ConfigOrigin::Repository(_) => "repository",
        }
        .to_owned(),
        disabled: entry.status == ServerAvailability::Disabled,
        availability: match &entry.status {
            ServerAvailability::Found(found) => Availability::Found {
                program: found.program.to_string_lossy().into_owned(),
                arguments: found
                    .arguments
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect(),
            },
            ServerAvailability::Remote(address) => Availability::Found {
                program: address.to_string(),
                arguments: Vec::new(),
            },
            ServerAvailability::Missing(missing) => Availability::Missing {
                install: missing.install.clone(),
            },
            ServerAvailability::Disabled => Availability::Missing {
                install: "turned off by a configuration".to_owned(),
            },
        },
    }
}
