//! The daemon itself: whether it lives, what it is doing, how to stop it and how to open its page.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Boot, ContextCounts, JobCounts, LogState, Machine, PlanCounts, ProcessSummary, SessionCounts};

/// The answer of `GET /healthz`: the process is alive and serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Always `ok`; a daemon that is not well does not answer.
    pub status: HealthStatus,
}

/// The only health that an answering daemon can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The process is alive and serves requests.
    Ok,
}

/// The answer of `GET /readyz` when the daemon takes work. When it does not, the answer is a problem with
/// the code `not_ready` or `log_refusing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Always `ready`.
    pub status: ReadinessStatus,
}

/// The readiness of a daemon that takes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessStatus {
    /// The daemon takes work.
    Ready,
}

/// Where the daemon is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is setting itself up and does not take work yet.
    Starting,
    /// It takes work.
    Ready,
    /// It finishes what is in flight and takes no new work.
    Draining,
    /// It is about to exit.
    Stopped,
}

/// The answer of `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The id of this run of the daemon; another start has another one.
    #[schema(example = "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub boot_id: String,
    /// The process id.
    pub pid: u32,
    /// When the daemon started, in RFC 3339 and UTC.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00Z")]
    pub started_at: String,
    /// For how long it has been running.
    pub uptime_ms: u64,
    /// Where it is in its life.
    pub phase: Phase,
    /// The TCP address that it listens on.
    #[schema(example = "127.0.0.1:7180")]
    pub address: String,
    /// The path of its Unix socket.
    pub socket: String,
    /// The machine that it is on. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The other machines that have used the same log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_machines: Vec<Machine>,
    /// How many circuit breakers there are, and how many refuse calls.
    pub breakers: BreakerSummary,
    /// Whether the durable log takes writes. Daemons that had no log yet do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogState>,
    /// The last life of a daemon of this home that ended without a word, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_crash: Option<Boot>,
    /// How many processes the daemon owns, and what it found of an earlier one. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessSummary>,
    /// How many jobs wait and run. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobCounts>,
    /// How many plans are being worked on, or wait to be applied. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<PlanCounts>,
    /// What an earlier daemon left half-way and is being set right, in words. Whoever wants something of it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovering: Vec<String>,
    /// How many turns run, and how many sessions have prompts that wait. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionCounts>,
    /// How many indexes of workspaces are open. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextCounts>,
    /// The resident memory of the process, where the system tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
}

/// Circuit breakers in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerSummary {
    /// How many names are tracked.
    pub total: u64,
    /// How many of them are open, by themselves or by hand.
    pub open: u64,
}

/// The answer of `POST /v1/shutdown`: the daemon has begun to drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShutdownAccepted {
    /// The run that is ending, so that a caller can tell it from the next one.
    pub boot_id: String,
}

/// The answer of `POST /v1/page-links`: a link that opens the page once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageLink {
    /// The address to open in a browser. It carries a secret and works once.
    #[schema(example = "http://127.0.0.1:7180/open?code=0f3c…")]
    pub url: String,
    /// For how long the link can be used.
    pub expires_in_ms: u64,
}

impl std::fmt::Debug for PageLink {
    /// Leaves the address out, because it carries a secret and debug output ends up in logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PageLink")
            .field("expires_in_ms", &self.expires_in_ms)
            .finish_non_exhaustive()
    }
}
