//! The daemon itself: its health and status, how to stop it, and how to open its page.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Boot, ContextCounts, JobCounts, LogState, Machine, PlanCounts, ProcessSummary, SessionCounts};

/// The response of `GET /healthz`: the process is alive and serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`. An unhealthy daemon doesn't respond.
    pub status: HealthStatus,
}

/// The only health a responding daemon can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The process is alive and serves requests.
    Ok,
}

/// The response of `GET /readyz` when the daemon accepts work. Otherwise the response is a problem with the
/// code `not_ready` or `log_refusing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Always `ready`.
    pub status: ReadinessStatus,
}

/// The readiness of a daemon that accepts work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessStatus {
    /// The daemon accepts work.
    Ready,
}

/// The phase of the daemon's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is starting and doesn't accept work yet.
    Starting,
    /// It accepts work.
    Ready,
    /// It is finishing work in flight and accepts no new work.
    Draining,
    /// It is about to exit.
    Stopped,
}

/// The response of `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The id of this run of the daemon. Every start gets a new one.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub boot_id: String,
    /// The process id of the daemon.
    pub pid: u32,
    /// When the daemon started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// How long the daemon has been running, in milliseconds.
    pub uptime_ms: u64,
    /// The phase of the daemon's run.
    pub phase: Phase,
    /// The TCP address that the daemon listens on.
    #[schema(example = "127.0.0.1:7180")]
    pub address: String,
    /// The path of the daemon's Unix socket.
    pub socket: String,
    /// The machine the daemon runs on. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Other machines that have used the same log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_machines: Vec<Machine>,
    /// The number of circuit breakers, and how many of them are open.
    pub breakers: BreakerSummary,
    /// Whether the durable log accepts writes. Absent in older daemons, which had no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogState>,
    /// The most recent run of a daemon of this home that crashed. Absent if no crash is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_crash: Option<Boot>,
    /// The number of processes the daemon owns, and what it found of an earlier daemon. Absent in older
    /// daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessSummary>,
    /// The number of queued and running jobs. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobCounts>,
    /// The number of open and sealed plans. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<PlanCounts>,
    /// Descriptions of unfinished work of an earlier daemon that is being recovered. Requests that need it
    /// wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovering: Vec<String>,
    /// The number of running turns, and of sessions with waiting prompts. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionCounts>,
    /// The number of open workspace indexes. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextCounts>,
    /// The resident memory of the process, in bytes. Absent if the system doesn't report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
}

/// A summary of the circuit breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerSummary {
    /// The number of tracked names.
    pub total: u64,
    /// The number of open breakers, including those forced open.
    pub open: u64,
}

/// The response of `POST /v1/shutdown`: the daemon has started to drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShutdownAccepted {
    /// The id of the run that is ending, so that a caller can tell it from the next one.
    pub boot_id: String,
}

/// The response of `POST /v1/page-links`: a link that opens the page once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageLink {
    /// The URL to open in a browser. It contains a secret and works once.
    #[schema(example = "http://127.0.0.1:7180/open?code=0f3c…")]
    pub url: String,
    /// How long the link is valid, in milliseconds.
    pub expires_in_ms: u64,
}

impl std::fmt::Debug for PageLink {
    /// Omits the URL, because it contains a secret and debug output ends up in logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PageLink")
            .field("expires_in_ms", &self.expires_in_ms)
            .finish_non_exhaustive()
    }
}
