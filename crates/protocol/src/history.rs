//! What people did to breakers by hand, event by event.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One change by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerEvent {
    /// Its place in the history: 1, 2, 3 and so on, without a gap.
    pub sequence: u64,
    /// When it was done, in RFC 3339 and UTC, to the millisecond.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00.125Z")]
    pub at: String,
    /// What was done: `forced_open`, `forced_closed` or `reset`. Later versions may add others.
    #[schema(example = "forced_open")]
    pub kind: String,
    /// Who did it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// The request that made it, as in the header `x-request-id` of its answer.
    #[schema(example = "req_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub request_id: String,
    /// The way on which the request came: `unix` or `tcp`.
    #[schema(example = "unix")]
    pub transport: String,
}

/// The answer of `GET /v1/breakers/{name}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerEventList {
    /// The events, oldest first.
    pub events: Vec<BreakerEvent>,
    /// The oldest event that is still there. Older ones were dropped after their time.
    pub first: u64,
    /// The newest event, in this answer or not; 0 if there never was one.
    pub last: u64,
}

/// The data of an event `resync` in a stream: events that the reader has not seen were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resync {
    /// The stream goes on after this place.
    pub after: u64,
}
