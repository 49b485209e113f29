//! Circuit breakers, one per name, shared by all clients of the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A snapshot of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breaker {
    /// The name that callers agree on, for example `lsp/rust-analyzer`.
    pub id: String,
    /// Whether the breaker lets calls through.
    pub state: BreakerState,
    /// Changes whenever the state changes. Pass it to a reset to make sure it only applies to the state you
    /// saw.
    pub generation: u64,
    /// How long until an open breaker lets a probe through, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether a probe is in progress.
    pub probing: bool,
    /// The number of consecutive failures while the breaker is closed; 0 in every other state.
    pub consecutive_failures: u32,
    /// The total number of failures counted.
    pub failures: u64,
    /// The number of calls the breaker refused.
    pub refused: u64,
    /// The number of reports that arrived after their generation had ended, and so had no effect.
    pub late_reports: u64,
    /// How many times the breaker has opened.
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
    /// One call at a time goes through, to find out whether calls succeed again.
    HalfOpen,
    /// A user forced it open. It stays open until a user changes it.
    ForcedOpen,
    /// A user forced it closed. Failures are counted but don't open it.
    ForcedClosed,
}

/// The response of `GET /v1/breakers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerList {
    /// All breakers, sorted by name.
    pub breakers: Vec<Breaker>,
    /// The number of calls for names that couldn't be tracked because the table was full of busy ones.
    pub untracked: u64,
}

/// The optional body of `POST /v1/breakers/{name}/reset`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBreaker {
    /// Reset only if this is still the current generation. If omitted, the reset is unconditional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The response of `POST /v1/breakers/reset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResetBreakers {
    /// How many breakers were reset.
    pub reset: u64,
}

/// The body of `POST /v1/breakers/{name}/force`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceBreaker {
    /// The state to hold the breaker in until a user changes it.
    pub state: ForcedState,
}

/// A state that a user can force a breaker into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForcedState {
    /// Refuse every call.
    Open,
    /// Let every call through.
    Closed,
}

/// The body of `POST /v1/breakers/{name}/record`: the outcome of a call that the caller made itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordOutcome {
    /// Whether the call succeeded.
    pub outcome: Outcome,
    /// How long the other side asked callers to wait, in milliseconds. Only valid with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The call succeeded.
    Success,
    /// The call failed.
    Failure,
}
