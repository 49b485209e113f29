//! Circuit breakers, one per name, shared by everything that talks to the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One circuit breaker as it was when the daemon looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breaker {
    /// The name that callers agree on, for example `lsp/rust-analyzer`.
    pub id: String,
    /// Whether calls are let through.
    pub state: BreakerState,
    /// Changes with every change of the state. A reset that names it applies only to what the caller saw.
    pub generation: u64,
    /// After how long an open breaker lets a probe through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether a probe is under way right now.
    pub probing: bool,
    /// Failures in a row while it is closed; 0 in every other state.
    pub consecutive_failures: u32,
    /// All failures that were counted.
    pub failures: u64,
    /// Calls that were turned away.
    pub refused: u64,
    /// Reports that came after their generation had ended and so changed nothing.
    pub late_reports: u64,
    /// How often the breaker has opened.
    pub times_opened: u64,
}

/// Whether a breaker lets calls through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused until the cooldown is over.
    Open,
    /// One call at a time is let through to see whether things are well again.
    HalfOpen,
    /// Somebody opened it by hand; it stays open until somebody changes that.
    ForcedOpen,
    /// Somebody closed it by hand; failures are counted and do not open it.
    ForcedClosed,
}

/// The answer of `GET /v1/breakers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerList {
    /// All breakers, sorted by name.
    pub breakers: Vec<Breaker>,
    /// Calls for names that could not be tracked because the table was full of busy ones.
    pub untracked: u64,
}

/// The optional body of `POST /v1/breakers/{name}/reset`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBreaker {
    /// Reset only if this is still the current generation. Left out, the reset is unconditional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The answer of `POST /v1/breakers/reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResetBreakers {
    /// How many breakers were reset.
    pub reset: u64,
}

/// The body of `POST /v1/breakers/{name}/force`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceBreaker {
    /// What the breaker shall be until somebody changes that.
    pub state: ForcedState,
}

/// A state that a breaker can be held in by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForcedState {
    /// Refuse every call.
    Open,
    /// Let every call through.
    Closed,
}

/// The body of `POST /v1/breakers/{name}/record`: how a call ended that the caller made by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordOutcome {
    /// How the call ended.
    pub outcome: Outcome,
    /// How long the other side asked to be left alone; only with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It worked.
    Success,
    /// It did not.
    Failure,
}
