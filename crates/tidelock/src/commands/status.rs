//! `tidelock status`: whether the daemon runs and what it is doing. It never starts one.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::job::local;
use crate::client::{Client, ClientError};
use crate::context::{VERSION, version_skew};
use crate::daemon_process::DaemonProcess;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, fields};
use crate::printable::one_line;
use crate::start::does_not_answer;
use crate::units::{format_bytes, format_count, format_duration};

pub(super) fn run(client: &Client) -> Result<Report, Failure> {
    match client.get::<protocol::Status>("/v1/status") {
        Ok(status) => Ok(running(client.palette(), status)),
        Err(ClientError::Unreachable { .. }) => match DaemonProcess::find(&client.context.home) {
            Ok(Some(process)) => Err(does_not_answer(process.owner.pid)),
            Ok(None) | Err(_) => Ok(stopped(client.palette())),
        },
        Err(error) => Err(error.into()),
    }
}

/// The daemon as the command line shows it: an entity with an id and a state.
#[derive(Debug, Serialize)]
pub(super) struct Daemon {
    id: String,
    state: protocol::Phase,
    version: String,
    client_version: &'static str,
    pid: u32,
    started_at: String,
    uptime_ms: u64,
    address: String,
    socket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<protocol::Machine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_machines: Vec<protocol::Machine>,
    breakers: protocol::BreakerSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<protocol::LogState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_crash: Option<protocol::Boot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<protocol::ProcessSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<protocol::JobCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<protocol::SessionCounts>,
    /// Unfinished work of an earlier daemon that is being recovered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recovering: Vec<String>,
    rss_bytes: Option<u64>,
    /// What to do if the versions of client and daemon differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl From<protocol::Status> for Daemon {
    fn from(status: protocol::Status) -> Daemon {
        Daemon {
            id: status.boot_id,
            state: status.phase,
            advice: version_skew(&status.version),
            version: status.version,
            client_version: VERSION,
            pid: status.pid,
            started_at: status.started_at,
            uptime_ms: status.uptime_ms,
            address: status.address,
            socket: status.socket,
            machine: status.machine,
            other_machines: status.other_machines,
            breakers: status.breakers,
            log: status.log,
            last_crash: status.last_crash,
            processes: status.processes,
            jobs: status.jobs,
            sessions: status.sessions,
            recovering: status.recovering,
            rss_bytes: status.rss_bytes,
        }
    }
}

fn running(palette: Palette, status: protocol::Status) -> Report {
    let daemon = Daemon::from(status);
    let (word, tone) = match daemon.state {
        protocol::Phase::Starting => ("starting", Tone::Warning),
        protocol::Phase::Ready => ("ready", Tone::Good),
        protocol::Phase::Draining => ("draining", Tone::Warning),
        protocol::Phase::Stopped => ("stopped", Tone::Warning),
    };
    let breakers = &daemon.breakers;
    let mut rows = vec![
        ("daemon", Cell::toned(word, tone)),
        ("id", Cell::new(&daemon.id)),
        ("pid", Cell::new(daemon.pid.to_string())),
        ("version", Cell::new(&daemon.version)),
        (
            "uptime",
            Cell::new(format_duration(Duration::from_millis(daemon.uptime_ms))),
        ),
        ("address", Cell::new(format!("http://{}", daemon.address))),
        ("socket", Cell::new(&daemon.socket)),
        (
            "breakers",
            Cell::new(format!("{} known, {} open", breakers.total, breakers.open)),
        ),
    ];
    rows.extend(machines(&daemon));
    if let Some(processes) = daemon.processes {
        rows.push(("processes", owned(processes)));
    }
    if let Some(jobs) = daemon.jobs {
        let (running, most, queued) = (jobs.running, jobs.max_workers, jobs.queued);
        let text = format!("{running} running of at most {most}, {queued} waiting");
        rows.push(("jobs", Cell::new(text)));
    }
    if let Some(sessions) = daemon.sessions {
        let (running, waiting) = (sessions.running, sessions.waiting);
        let turns = format_count(running, "turn");
        let text = format!(
            "{turns} running, {} with waiting prompts",
            format_count(waiting, "session")
        );
        rows.push(("sessions", Cell::new(text)));
    }
    for recovery in &daemon.recovering {
        rows.push(("recovering", Cell::toned(one_line(recovery), Tone::Warning)));
    }
    if let Some(log) = daemon.log {
        let cell = match log {
            protocol::LogState::Writable => Cell::new("writable"),
            protocol::LogState::Refusing => Cell::toned("refuses writes; see `tidelock doctor`", Tone::Bad),
        };
        rows.push(("log", cell));
    }
    if let Some(crashed) = &daemon.last_crash {
        let told = format!("pid {}, started at {}", crashed.pid, local(&crashed.started_at));
        rows.push(("last crash", Cell::toned(told, Tone::Warning)));
    }
    if let Some(bytes) = daemon.rss_bytes {
        rows.push(("memory", Cell::new(format_bytes(bytes))));
    }
    let mut text = fields(palette, rows);
    if let Some(advice) = &daemon.advice {
        text.push_str(&format!("{} {advice}\n", palette.paint("note:", Tone::Warning)));
    }
    Report::success(json!(daemon), text)
}

/// The daemon's machine and the others, if there are any.
fn machines(daemon: &Daemon) -> Option<(&'static str, Cell)> {
    let own = daemon.machine.as_ref()?;
    let others: Vec<&str> = daemon
        .other_machines
        .iter()
        .map(|machine| machine.name.as_str())
        .collect();
    let text = format!("{}; shares its log with {}", own.name, others.join(", "));
    (!others.is_empty()).then(|| ("machine", Cell::new(one_line(&text))))
}

fn owned(processes: protocol::ProcessSummary) -> Cell {
    let mut text = format!("{} owned", processes.owned);
    if processes.reclaimed > 0 {
        text.push_str(&format!(", {} of an earlier daemon ended", processes.reclaimed));
    }
    match processes.unreclaimed {
        0 => Cell::new(text),
        left => {
            text.push_str(&format!(", {left} of an earlier daemon could not be ended"));
            Cell::toned(text, Tone::Bad)
        }
    }
}

fn stopped(palette: Palette) -> Report {
    let mut text = fields(palette, vec![("daemon", Cell::toned("stopped", Tone::Warning))]);
    text.push_str("Start it with `tidelock up`.\n");
    Report {
        value: json!({ "state": "stopped" }),
        text,
        notes: Vec::new(),
        exit: Exit::Unreachable,
    }
}
