//! Servers as shown on a terminal.

use std::time::Duration;

use protocol::{Server, ServerHealth, ServerLog, ServerReadiness, ServerState};

use crate::commands::job::local;
use crate::output::{Cell, Palette, Tone, fields, list};
use crate::printable::{cut, one_line};
use crate::units::{format_bytes, format_duration};

/// How much of an error is shown in a field.
const ERROR_CHARACTERS: usize = 300;

pub(super) fn rows(palette: Palette, servers: &[Server], none: &str) -> String {
    let row = |server: &Server| {
        vec![
            Cell::new(one_line(&server.id)),
            state(server),
            Cell::new(server.generation.to_string()),
            Cell::or_dash(server.rss_bytes.map(format_bytes)),
            Cell::new(server.restarts.to_string()),
            Cell::new(server.requests.to_string()),
            Cell::new(one_line(&server.root)),
        ]
    };
    list(
        palette,
        &["ID", "STATE", "GEN", "MEMORY", "RESTARTS", "REQUESTS", "ROOT"],
        servers.iter().map(row).collect(),
        none,
    )
}

pub(super) fn describe(server: &Server) -> Vec<(&'static str, Cell)> {
    let since = format_duration(Duration::from_millis(server.since_ms));
    let mut pairs = vec![
        ("server", Cell::new(one_line(&server.id))),
        ("state", state(server)),
        ("for", Cell::new(since)),
        ("generation", Cell::new(server.generation.to_string())),
        ("root", Cell::new(one_line(&server.root))),
    ];
    for progress in &server.progress {
        let parts = [Some(progress.title.as_str()), progress.message.as_deref()];
        let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        if let Some(percentage) = progress.percentage {
            text.push_str(&format!(" ({percentage} %)"));
        }
        pairs.push(("working on", Cell::new(cut(&text, ERROR_CHARACTERS))));
    }
    if let Some(pid) = server.pid {
        pairs.push(("pid", Cell::new(pid.to_string())));
    }
    if let Some(bytes) = server.rss_bytes {
        pairs.push(("memory", Cell::new(format_bytes(bytes))));
    }
    let requests = format!("{}, {} waiting", server.requests, server.pending_requests);
    pairs.extend([
        ("restarts", Cell::new(server.restarts.to_string())),
        ("requests", Cell::new(requests)),
        ("documents", Cell::new(format!("{} open", server.open_documents))),
        ("users", Cell::new(server.leases.to_string())),
    ]);
    if let Some(error) = &server.last_error {
        pairs.push((
            "last error",
            Cell::toned(cut(error, ERROR_CHARACTERS), Tone::Warning),
        ));
    }
    pairs
}

pub(super) fn healthy(palette: Palette, health: &ServerHealth) -> String {
    let alive = if health.alive {
        Cell::toned("yes", Tone::Good)
    } else {
        Cell::toned("no", Tone::Bad)
    };
    let took = health
        .answered_in_ms
        .map(|ms| format_duration(Duration::from_millis(ms)));
    let answers = match (health.answers, took) {
        (Some(true), Some(took)) => Cell::toned(format!("yes, in {took}"), Tone::Good),
        (Some(true), None) => Cell::toned("yes", Tone::Good),
        (Some(false), _) => Cell::toned("no", Tone::Bad),
        (None, _) => Cell::new("not checked in this state"),
    };
    let mut pairs = describe(&health.server);
    pairs.splice(2..2, [("alive", alive), ("answers", answers)]);
    fields(palette, pairs)
}

pub(super) fn lines(palette: Palette, log: &ServerLog) -> String {
    if log.lines.is_empty() {
        return "The log is empty.\n".to_owned();
    }
    let mut text = String::new();
    for line in &log.lines {
        let tone = match line.level.as_str() {
            "error" => Tone::Bad,
            "warning" => Tone::Warning,
            "state" => Tone::Good,
            _ => Tone::Quiet,
        };
        let level = palette.paint(&format!("{:<7}", one_line(&line.level)), tone);
        let said = line.text.trim_end().replace('\n', "\n    ");
        text.push_str(&format!("{}  {level}  {said}\n", one_line(&local(&line.at))));
    }
    text
}

fn state(server: &Server) -> Cell {
    match server.state {
        ServerState::Starting => Cell::toned("starting", Tone::Warning),
        ServerState::Ready if server.readiness == Some(ServerReadiness::Indexing) => {
            let percentage = server.progress.iter().find_map(|progress| progress.percentage);
            let far = percentage.map_or_else(String::new, |percentage| format!(" {percentage} %"));
            Cell::toned(format!("indexing{far}"), Tone::Warning)
        }
        ServerState::Ready => Cell::toned("ready", Tone::Good),
        ServerState::Restarting => Cell::toned("restarting", Tone::Warning),
        ServerState::Stopping => Cell::toned("stopping", Tone::Warning),
        ServerState::Stopped => Cell::toned("stopped", Tone::Quiet),
        ServerState::Failed => match server.retry_after_ms {
            Some(ms) => {
                let soon = format_duration(Duration::from_millis(ms));
                Cell::toned(format!("failed, again in {soon}"), Tone::Bad)
            }
            None => Cell::toned("failed", Tone::Bad),
        },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use protocol::{ServerLogLine, ServerProgress};

    use super::*;

    /// A ready server; its name is the part before the last dash of the id.
    pub(in super::super) fn server(id: &str, root: &str) -> Server {
        Server {
            id: id.to_owned(),
            state: ServerState::Ready,
            server: id.rsplit_once('-').unwrap().0.to_owned(),
            root: root.to_owned(),
            generation: 1,
            since_ms: 65_000,
            readiness: Some(ServerReadiness::Ready),
            progress: Vec::new(),
            pid: Some(4242),
            rss_bytes: Some(100 << 20),
            restarts: 0,
            last_error: None,
            retry_after_ms: None,
            leases: 2,
            open_documents: 3,
            pending_requests: 1,
            requests: 17,
        }
    }

    #[test]
    fn a_list_tells_the_state_of_each() {
        let indexing = Server {
            readiness: Some(ServerReadiness::Indexing),
            progress: vec![ServerProgress {
                title: "Indexing".to_owned(),
                message: Some("std".to_owned()),
                percentage: Some(40),
            }],
            ..server("rust-analyzer-2", "/b")
        };
        let failed = Server {
            state: ServerState::Failed,
            generation: 6,
            rss_bytes: None,
            restarts: 5,
            retry_after_ms: Some(3_000),
            ..server("gopls-1", "/c")
        };
        insta::assert_snapshot!(rows(Palette::Plain, &[server("ruff-1", "/a"), indexing, failed], ""), @r"
        ID               STATE                 GEN  MEMORY     RESTARTS  REQUESTS  ROOT
        ruff-1           ready                 1    100.0 MiB  0         17        /a
        rust-analyzer-2  indexing 40 %         1    100.0 MiB  0         17        /b
        gopls-1          failed, again in 3 s  6    -          5         17        /c
        ");
    }

    #[test]
    fn health_says_whether_it_lives_and_answers() {
        let health = ServerHealth {
            server: Server {
                last_error: Some("exit code 1:\n  out of memory".to_owned()),
                ..server("ruff-1", "/a")
            },
            alive: true,
            answers: Some(true),
            answered_in_ms: Some(12),
        };
        insta::assert_snapshot!(healthy(Palette::Plain, &health), @r"
        server      ruff-1
        state       ready
        alive       yes
        answers     yes, in 12 ms
        for         1 min 5 s
        generation  1
        root        /a
        pid         4242
        memory      100.0 MiB
        restarts    0
        requests    17, 1 waiting
        documents   3 open
        users       2
        last error  exit code 1: out of memory
        ");
    }

    #[test]
    fn a_log_is_read_line_by_line() {
        let line = |level: &str, text: &str| ServerLogLine {
            at: "2026-01-31T09:30:00Z".to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
        };
        let log = ServerLog {
            lines: vec![line("state", "ready"), line("stderr", "panic\nat main\n")],
        };
        insta::assert_snapshot!(lines(Palette::Plain, &log), @r"
        2026-01-31 09:30:00  state    ready
        2026-01-31 09:30:00  stderr   panic
            at main
        ");
        assert_eq!(
            lines(Palette::Plain, &ServerLog { lines: Vec::new() }),
            "The log is empty.\n"
        );
    }
}
